-- The runs of a schedule that the next tick would overlap with: of ticks and triggers, not terminal. Backfilled runs and forks
-- are apart: somebody's work on the past must not keep the present from running, nor be ended by it.
CREATE OR REPLACE FUNCTION live_runs(p_schedule text) RETURNS text[]
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT array_agg(s.workflow_id)
    FROM workflow_status s
   WHERE s.schedule = p_schedule AND s.schedule_cause IN ('tick', 'trigger')
     AND s.status IN ('ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED')
$$;
