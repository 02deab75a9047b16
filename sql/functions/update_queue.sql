-- Changes some settings of a queue: those that p_changes, an object whose keys are columns of queue, has; null takes a limit
-- away. Returns whether there is such a queue. Takes effect at the next claim; what runs goes on.
CREATE OR REPLACE FUNCTION update_queue(p_name text, p_changes jsonb) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_queue queue%ROWTYPE;
BEGIN
  SELECT * INTO v_queue FROM queue q WHERE q.name = p_name FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  v_queue := jsonb_populate_record(v_queue, p_changes);
  UPDATE queue q
     SET concurrency = v_queue.concurrency, executor_concurrency = v_queue.executor_concurrency,
         key_concurrency = v_queue.key_concurrency, rate_limit = v_queue.rate_limit,
         rate_period_ms = v_queue.rate_period_ms, key_rate_limit = v_queue.key_rate_limit,
         key_rate_period_ms = v_queue.key_rate_period_ms, paused = v_queue.paused, updated_at = clock()
   WHERE q.name = p_name;
  PERFORM pg_notify(current_schema() || '.work', '');
  RETURN true;
END
$$;
