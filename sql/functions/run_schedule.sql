-- Runs a schedule besides its ticks, and leaves its next tick alone.
--
--   trigger   one run at once, under p_workflow_id. It gets in line with overlap 'queue', and ends earlier runs with 'cancel'
--             (p_cancelled_error is their outcome); 'skip' does not keep it back, since somebody asks for it.
--   backfill  one run of each of p_ticks_ms (milliseconds since 1970), one after the other, but for those that have one
--
-- No row: there is no such schedule, and none of the runs is this call's. p_nonce makes a repeated call answer what the first one did.
CREATE OR REPLACE FUNCTION run_schedule(
  p_name text, p_cause text, p_workflow_id text, p_ticks_ms bigint[], p_nonce uuid, p_cancelled_error text
)
RETURNS TABLE (workflow_id text, scheduled_ms double precision, is_new boolean)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  c_epoch    CONSTANT timestamptz := 'epoch';
  v_ids      text[] := ARRAY[p_workflow_id];
  v_ticks    timestamptz[] := ARRAY[date_trunc('milliseconds', clock())];
  v_runs     record;
  v_schedule schedule%ROWTYPE;
  v_is_gone  boolean;
BEGIN
  -- One at a time, so that a repeated call finds what the first one did.
  SELECT * INTO v_schedule FROM schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
  v_is_gone := NOT FOUND;
  IF p_cause = 'backfill' THEN
    SELECT coalesce(array_agg(t.tick ORDER BY t.place), '{}'),
           coalesce(array_agg(schedule_run_id(p_name, t.tick) ORDER BY t.place), '{}')
      INTO v_ticks, v_ids
      FROM (SELECT c_epoch + r.ms * interval '1 ms' AS tick, r.place
              FROM unnest(p_ticks_ms) WITH ORDINALITY AS r (ms, place)) t;
  END IF;
  IF v_is_gone THEN
    -- Deleted since an earlier try of this call, whose reply was lost: its runs are there, and they are the answer.
    RETURN QUERY
    SELECT s.workflow_id, (extract(epoch FROM s.scheduled_at) * 1000)::double precision, i.nonce = p_nonce
      FROM unnest(v_ids) WITH ORDINALITY AS r (id, place)
      JOIN workflow_status s ON s.workflow_id = r.id
      JOIN workflow_input i ON i.workflow_id = r.id
     WHERE EXISTS (SELECT FROM workflow_input x WHERE x.workflow_id = ANY (v_ids) AND x.nonce = p_nonce)
     ORDER BY r.place;
    RETURN;
  END IF;
  IF p_cause <> 'backfill' AND v_schedule.overlap = 'cancel' AND NOT EXISTS (
    SELECT FROM workflow_status s WHERE s.workflow_id = p_workflow_id
  ) THEN
    PERFORM cancel_tree(live_runs(p_name), NULL, NULL, p_nonce, 'schedule', 'Schedule ' || p_name || ' was triggered', 'cancel',
                        p_cancelled_error);
  END IF;
  SELECT * INTO v_runs FROM enqueue_runs(v_schedule, v_ids, v_ticks, p_cause, p_nonce);
  IF v_runs.refusal IS NOT NULL THEN
    RAISE EXCEPTION 'There is no queue "%".', v_schedule.queue
      USING ERRCODE = 'HF001', HINT = 'Define it with queues.define, or give the schedule another one.';
  END IF;
  RETURN QUERY
  SELECT r.id, (extract(epoch FROM coalesce(s.scheduled_at, r.tick)) * 1000)::double precision, r.is_new
    FROM unnest(v_ids, v_ticks, v_runs.new_runs) WITH ORDINALITY AS r (id, tick, is_new, place)
    LEFT JOIN workflow_status s ON s.workflow_id = r.id
   ORDER BY r.place;
END
$$;
