-- Fires ticks of a schedule, and moves it on to its next one, in one transaction: the check that makes one run of every tick.
--
-- p_revision and p_due_ms (next_fire_at, in milliseconds since 1970) say which state the caller has computed from: the ticks to
-- run, all due, in their order; how many others it dropped as missed; and the tick after all of these.
--
--   fired     done, whether or not a run came of it: workflow_ids are the new runs
--   stale     somebody else fired or changed it, it is paused, gone, or its row is locked: nothing was written
--
-- Fails with HF001 when its queue is not there.
--
-- Which of the ticks lead to a run when runs must not overlap:
--   skip      the first, unless an earlier run is still going
--   queue     all; they wait for each other
--   cancel    the last; earlier runs that are still going are cancelled, with p_cancelled_error as their outcome
-- A tick whose run is there already (it was backfilled) is done with.
--
-- SKIP LOCKED: several executors come at the same moment, and one of them is enough. lock_timeout: a run that is to be
-- cancelled may be locked; the whole call is made again then.
CREATE OR REPLACE FUNCTION fire_schedule(
  p_name text, p_revision bigint, p_due_ms bigint, p_ticks_ms bigint[], p_missed bigint, p_next_ms bigint,
  p_cancelled_error text, OUT answer text, OUT workflow_ids text[]
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  c_epoch    CONSTANT timestamptz := 'epoch';
  v_now      timestamptz := clock();
  v_next     timestamptz := c_epoch + p_next_ms * interval '1 ms';
  v_ticks    timestamptz[];
  v_dropped  integer;
  v_live     text[];
  v_ids      text[];
  v_runs     record;
  v_schedule schedule%ROWTYPE;
BEGIN
  SELECT * INTO v_schedule
    FROM schedule s
   WHERE s.name = p_name AND s.revision = p_revision AND s.next_fire_at = c_epoch + p_due_ms * interval '1 ms'
     AND s.next_fire_at <= v_now AND NOT s.paused
     FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    answer := 'stale';
    RETURN;
  END IF;
  SELECT coalesce(array_agg(t.tick ORDER BY t.tick), '{}') INTO v_ticks
    FROM (SELECT c_epoch + r.ms * interval '1 ms' AS tick FROM unnest(p_ticks_ms) AS r (ms)) t
   WHERE NOT EXISTS (SELECT FROM workflow_status s WHERE s.workflow_id = schedule_run_id(p_name, t.tick));
  IF v_next <= v_schedule.next_fire_at OR v_ticks[1] < v_schedule.next_fire_at
     OR v_ticks[cardinality(v_ticks)] > v_now OR v_ticks[cardinality(v_ticks)] >= v_next THEN
    RAISE EXCEPTION 'Ticks of schedule "%" are not between those that it names.', p_name USING ERRCODE = '22023';
  END IF;

  v_dropped := cardinality(v_ticks);
  IF v_schedule.overlap <> 'queue' AND v_dropped > 0 THEN
    v_live := live_runs(p_name);
    IF v_schedule.overlap = 'cancel' THEN
      v_ticks := v_ticks[v_dropped:];
      PERFORM cancel_tree(v_live, NULL, NULL, gen_random_uuid(), 'schedule', 'A later tick of schedule ' || p_name, 'cancel',
                          p_cancelled_error);
    ELSE
      v_ticks := CASE WHEN v_live IS NULL THEN v_ticks[:1] ELSE '{}' END;
    END IF;
  END IF;
  v_dropped := v_dropped - cardinality(v_ticks);

  SELECT coalesce(array_agg(schedule_run_id(p_name, t.tick) ORDER BY t.place), '{}') INTO v_ids
    FROM unnest(v_ticks) WITH ORDINALITY AS t (tick, place);
  SELECT * INTO v_runs FROM enqueue_runs(v_schedule, v_ids, v_ticks, 'tick', gen_random_uuid());
  IF v_runs.refusal IS NOT NULL THEN
    -- A cancellation goes along: without a later run there is no reason for it.
    RAISE EXCEPTION 'There is no queue "%".', v_schedule.queue
      USING ERRCODE = 'HF001', HINT = 'Define it with queues.define, or give the schedule another one.';
  END IF;
  UPDATE schedule s
     SET next_fire_at = v_next, skipped = s.skipped + p_missed + v_dropped,
         last_fired_at = coalesce(v_ticks[cardinality(v_ticks)], s.last_fired_at),
         last_workflow_id = coalesce(v_ids[cardinality(v_ids)], s.last_workflow_id)
   WHERE s.name = p_name;
  answer := 'fired';
  workflow_ids := v_ids;
END
$$;
