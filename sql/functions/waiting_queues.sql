-- The queues that have something waiting, at most p_limit: those after p_after, then the others from the beginning. One look
-- into the index a queue; none for queues without a backlog.
CREATE OR REPLACE FUNCTION waiting_queues(p_after text, p_limit integer) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  v_queues text[] := '{}';
  -- No queue has the empty text for a name, so everything comes after it.
  v_queue  text := coalesce(p_after, '');
  v_wraps  boolean := p_after IS NOT NULL;
BEGIN
  WHILE cardinality(v_queues) < p_limit LOOP
    SELECT s.queue INTO v_queue
      FROM workflow_status s WHERE s.status = 'ENQUEUED' AND s.queue > v_queue ORDER BY s.queue LIMIT 1;
    IF FOUND AND (v_wraps OR p_after IS NULL OR v_queue <= p_after COLLATE "C") THEN
      v_queues := v_queues || v_queue;
    ELSIF v_wraps THEN
      v_wraps := false;
      v_queue := '';
    ELSE
      EXIT;
    END IF;
  END LOOP;
  RETURN v_queues;
END
$$;
