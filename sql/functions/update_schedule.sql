-- Changes some settings of a schedule: those that p_changes, an object whose keys are columns of schedule, has. p_revision is
-- what the caller has seen, from which it has computed next_fire_at where that is to change.
--
--   done      changed
--   missing   there is no such schedule
--   stale     somebody has changed it since: read it again
--   no_queue, no_turns   see schedule_refusal; nothing was written
CREATE OR REPLACE FUNCTION update_schedule(p_name text, p_revision bigint, p_changes jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_schedule schedule%ROWTYPE;
  v_refusal  text;
BEGIN
  SELECT * INTO v_schedule FROM schedule s WHERE s.name = p_name FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'missing';
  END IF;
  IF v_schedule.revision <> p_revision THEN
    RETURN 'stale';
  END IF;
  v_schedule := jsonb_populate_record(v_schedule, p_changes);
  v_refusal := schedule_refusal(v_schedule.queue, v_schedule.overlap);
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  UPDATE schedule s
     SET input = v_schedule.input, max_attempts = v_schedule.max_attempts, timeout_ms = v_schedule.timeout_ms,
         attributes = v_schedule.attributes, queue = v_schedule.queue, priority = v_schedule.priority,
         partition_key = v_schedule.partition_key, cron = v_schedule.cron, time_zone = v_schedule.time_zone,
         catch_up = v_schedule.catch_up, overlap = v_schedule.overlap, paused = v_schedule.paused,
         next_fire_at = v_schedule.next_fire_at, revision = s.revision + 1, updated_at = clock()
   WHERE s.name = p_name;
  PERFORM pg_notify(current_schema() || '.work', 'schedules');
  RETURN 'done';
END
$$;
