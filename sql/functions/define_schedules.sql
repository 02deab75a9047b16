-- Creates schedules, or replaces their definitions. p_schedules is a JSON array of objects whose keys are columns of schedule.
-- With p_is_declaration (what a launch does) a schedule that exists is only changed when the declaration is another than the
-- one that was applied last, so that edits outlive restarts.
--
-- Returns the schedules that were refused, with the reason (see schedule_refusal); then nothing was written.
--
-- next_fire_at is the caller's: the first tick from its reading of the clock on. It is for new schedules, and for those whose
-- cron expression or time zone becomes another: whatever else changes, the next tick stays where it is, and a paused schedule
-- stays paused.
CREATE OR REPLACE FUNCTION define_schedules(p_schedules jsonb, p_is_declaration boolean)
RETURNS TABLE (name text, refusal text, queue text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock();
BEGIN
  RETURN QUERY
  SELECT r.name, schedule_refusal(r.queue, r.overlap), r.queue
    FROM jsonb_populate_recordset(NULL::schedule, p_schedules) r
   WHERE schedule_refusal(r.queue, r.overlap) IS NOT NULL;
  IF FOUND THEN
    RETURN;
  END IF;
  INSERT INTO schedule AS s (name, workflow_name, instance, input, max_attempts, timeout_ms, attributes, queue, priority,
                             partition_key, cron, time_zone, catch_up, overlap, next_fire_at, declared, created_at,
                             updated_at)
  SELECT r.name, r.workflow_name, r.instance, r.input, r.max_attempts, r.timeout_ms, r.attributes, r.queue, r.priority,
         r.partition_key, r.cron, r.time_zone, r.catch_up, r.overlap, r.next_fire_at,
         CASE WHEN p_is_declaration THEN d.definition - 'next_fire_at' END, v_now, v_now
    FROM jsonb_array_elements(p_schedules) AS d (definition)
   CROSS JOIN LATERAL jsonb_populate_record(NULL::schedule, d.definition) r
   -- In one order, so that two launches cannot deadlock.
   ORDER BY r.name
  ON CONFLICT (name) DO UPDATE
    SET workflow_name = EXCLUDED.workflow_name, instance = EXCLUDED.instance, input = EXCLUDED.input,
        max_attempts = EXCLUDED.max_attempts, timeout_ms = EXCLUDED.timeout_ms, attributes = EXCLUDED.attributes,
        queue = EXCLUDED.queue, priority = EXCLUDED.priority, partition_key = EXCLUDED.partition_key,
        cron = EXCLUDED.cron, time_zone = EXCLUDED.time_zone, catch_up = EXCLUDED.catch_up, overlap = EXCLUDED.overlap,
        next_fire_at = CASE WHEN (s.cron, s.time_zone) = (EXCLUDED.cron, EXCLUDED.time_zone) THEN s.next_fire_at
                            ELSE EXCLUDED.next_fire_at END,
        declared = coalesce(EXCLUDED.declared, s.declared), revision = s.revision + 1, updated_at = v_now
    WHERE NOT p_is_declaration OR s.declared IS DISTINCT FROM EXCLUDED.declared;
  IF FOUND THEN
    PERFORM pg_notify(current_schema() || '.work', 'schedules');
  END IF;
END
$$;
