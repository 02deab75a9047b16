-- Enqueues runs of a schedule, whose row the caller has locked: one for each tick, in their order. Answers each run's ID and
-- whether it is new: enqueued under p_nonce, by this call or by an earlier one whose reply was lost. p_refusal is 'no_queue'
-- when the schedule's queue is not there; then nothing was written.
--
-- Runs that wait for each other do so in a queue, under one key. Where the schedule has no queue of its own it is the one that
-- schedules share, made when it is wanted for the first time. Backfilled runs always wait for each other: a month of them
-- must not start at once.
CREATE OR REPLACE FUNCTION enqueue_runs(
  p_schedule schedule, p_workflow_ids text[], p_ticks timestamptz[], p_cause text, p_nonce uuid,
  OUT new_runs boolean[], OUT refusal text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  c_shared  CONSTANT text := 'holdfast/schedules';
  v_count   integer := cardinality(p_workflow_ids);
  v_serial  boolean := p_schedule.overlap = 'queue' OR p_cause = 'backfill' AND p_schedule.queue IS NULL;
  v_queue   text := coalesce(p_schedule.queue, CASE WHEN v_serial THEN c_shared END);
  v_refused record;
  v_missing boolean;
BEGIN
  new_runs := array_fill(true, ARRAY[v_count]);
  IF v_count = 0 THEN
    RETURN;
  END IF;
  IF v_queue = c_shared AND NOT EXISTS (SELECT FROM queue q WHERE q.name = c_shared) THEN
    INSERT INTO queue (name, key_concurrency, created_at, updated_at) VALUES (c_shared, 1, clock(), clock())
    ON CONFLICT (name) DO NOTHING;
  END IF;
  LOOP
    v_missing := false;
    FOR v_refused IN
      SELECT e.item, e.answer
        FROM enqueue_items(
               p_workflow_ids, array_fill(p_nonce, ARRAY[v_count]), array_fill(p_schedule.workflow_name, ARRAY[v_count]),
               array_fill(p_schedule.instance, ARRAY[v_count]), array_fill(p_schedule.input, ARRAY[v_count]),
               array_fill(p_schedule.max_attempts, ARRAY[v_count]), array_fill(p_schedule.timeout_ms, ARRAY[v_count]),
               array_fill(p_schedule.attributes::text, ARRAY[v_count]), array_fill(v_queue, ARRAY[v_count]),
               array_fill(CASE WHEN v_queue IS NOT NULL THEN p_schedule.priority END, ARRAY[v_count]),
               array_fill(CASE WHEN v_serial THEN p_schedule.name ELSE p_schedule.partition_key END, ARRAY[v_count]),
               array_fill(NULL::bigint, ARRAY[v_count]), array_fill(NULL::text, ARRAY[v_count]),
               array_fill(NULL::bigint, ARRAY[v_count]), NULL, NULL, NULL) e
    LOOP
      IF v_refused.answer = 'no_queue' THEN
        refusal := 'no_queue';
        RETURN;
      END IF;
      v_missing := v_missing OR v_refused.answer = 'missing';
      new_runs[v_refused.item] := false;
    END LOOP;
    EXIT WHEN NOT v_missing;
    new_runs := array_fill(true, ARRAY[v_count]);
  END LOOP;
  UPDATE workflow_status s
     SET schedule = p_schedule.name, scheduled_at = r.tick, schedule_cause = p_cause
    FROM unnest(p_workflow_ids, p_ticks, new_runs) AS r (workflow_id, tick, is_new)
   WHERE r.is_new AND s.workflow_id = r.workflow_id AND s.schedule IS NULL;
END
$$;
