-- The queues that have something waiting, at most p_limit: those after p_after, then the others from the beginning. One look
-- into the index a queue; none for queues without a backlog. fronts: where in the table the first of each queue stands.
--
-- What has left a line leaves its entry in front of the index until the next vacuum: 100 a page, and with 8,000 workflows a
-- second soon thousands of pages. This look goes through them; what comes after it begins at the front that was found here.
CREATE OR REPLACE FUNCTION waiting_fronts(p_after text, p_limit integer, OUT queues text[], OUT fronts tid[])
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  -- No queue has the empty text for a name, so everything comes after it.
  v_queue  text := coalesce(p_after, '');
  v_front  tid;
  v_wraps  boolean := p_after IS NOT NULL;
BEGIN
  queues := '{}';
  fronts := '{}';
  WHILE cardinality(queues) < p_limit LOOP
    SELECT s.queue, s.ctid INTO v_queue, v_front
      FROM workflow_status s
     WHERE s.status = 'ENQUEUED' AND s.queue > v_queue
     ORDER BY s.queue, s.priority, s.partition_key, s.name,
              (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END),
              s.queued_at
     LIMIT 1;
    IF FOUND AND (v_wraps OR p_after IS NULL OR v_queue <= p_after COLLATE "C") THEN
      queues := queues || v_queue;
      fronts := fronts || v_front;
    ELSIF v_wraps THEN
      v_wraps := false;
      v_queue := '';
    ELSE
      EXIT;
    END IF;
  END LOOP;
END
$$;
