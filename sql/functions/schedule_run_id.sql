-- The ID of the run of a tick: the schedule's name and the tick in UTC, 'nightly/2026-03-29T01:00:00.000Z'. Whoever fires a
-- tick, and however often, it is one workflow.
CREATE OR REPLACE FUNCTION schedule_run_id(p_schedule text, p_tick timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT p_schedule || '/' || to_char(p_tick AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;
