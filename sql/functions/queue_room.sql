-- How many workflows this executor may take from a queue now. slots: until the queue's concurrency is reached; own: until
-- this executor's; rate: within the rate limit. Null: no limit. definition is null when there is no such queue: what is in
-- one that has been deleted is not limited.
-- free_at: when the rate limit lets something through again, if it lets nothing through now. is_contended: somebody else is
-- just claiming, and this executor may take nothing until then.
--
-- A queue with limits is locked until the transaction ends, so that what is counted stays true until it is taken; the
-- counts are statements of their own, which see what the holder before has committed. Nobody waits for that lock: who does
-- not get it goes on to other queues. Limits of an executor alone are its own affair, and lock nobody else out.
CREATE OR REPLACE FUNCTION queue_room(
  p_queue text, p_executor_id text, p_incarnation bigint,
  OUT definition queue, OUT slots integer, OUT own integer, OUT rate integer, OUT free_at timestamptz,
  OUT is_contended boolean
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
  v_now   timestamptz;
  v_queue queue%ROWTYPE;
BEGIN
  is_contended := false;
  SELECT * INTO v_queue FROM queue q WHERE q.name = p_queue;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF coalesce(v_queue.concurrency, v_queue.key_concurrency, v_queue.rate_limit, v_queue.key_rate_limit) IS NOT NULL THEN
    SELECT * INTO v_queue FROM queue q WHERE q.name = p_queue FOR NO KEY UPDATE SKIP LOCKED;
    is_contended := NOT FOUND;
  ELSIF v_queue.executor_concurrency IS NOT NULL THEN
    is_contended := NOT pg_try_advisory_xact_lock(
      hashtextextended(concat_ws('.', current_schema(), 'queue', p_queue, p_executor_id), 0));
  END IF;
  IF is_contended THEN
    slots := 0;
    own := 0;
    rate := 0;
    RETURN;
  END IF;
  definition := v_queue;
  v_now := clock();

  IF v_queue.concurrency IS NOT NULL THEN
    slots := greatest(v_queue.concurrency - held_slots(p_queue, v_queue.concurrency), 0);
  END IF;
  IF v_queue.executor_concurrency IS NOT NULL THEN
    SELECT greatest(v_queue.executor_concurrency - count(*), 0) INTO own
      FROM (SELECT FROM workflow_status s
             WHERE s.queue = p_queue AND s.status = 'PENDING'
               AND s.executor_id = p_executor_id AND s.incarnation = p_incarnation
             LIMIT v_queue.executor_concurrency) mine;
  END IF;
  IF v_queue.rate_limit IS NOT NULL THEN
    SELECT greatest(v_queue.rate_limit - count(*), 0) INTO rate
      FROM queue_start t
     WHERE t.queue = p_queue AND t.started_at > v_now - v_queue.rate_period_ms * interval '1 ms';
    IF rate = 0 THEN
      -- The start that makes room by leaving the window.
      SELECT t.started_at + v_queue.rate_period_ms * interval '1 ms' INTO free_at
        FROM queue_start t WHERE t.queue = p_queue
       ORDER BY t.started_at DESC OFFSET v_queue.rate_limit - 1 LIMIT 1;
    END IF;
  END IF;
END
$$;
