-- The queues by name; with p_name that one only. With p_counts also what is in them, which takes a while for long lines:
-- blocked is what waits for a person and holds no slot.
CREATE OR REPLACE FUNCTION list_queues(p_name text, p_counts boolean)
RETURNS TABLE (definition queue, waiting bigint, delayed bigint, running bigint, blocked bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  -- One pass over each of the partial indexes, however many queues there are.
  WITH counts AS MATERIALIZED (
    SELECT s.queue, 'waiting' AS what, count(*) AS n FROM workflow_status s
     WHERE p_counts AND s.status = 'ENQUEUED' AND s.queue IS NOT NULL AND (p_name IS NULL OR s.queue = p_name)
     GROUP BY s.queue
    UNION ALL
    SELECT s.queue, 'delayed', count(*) FROM workflow_status s
     WHERE p_counts AND s.status = 'DELAYED' AND s.queue IS NOT NULL AND (p_name IS NULL OR s.queue = p_name)
     GROUP BY s.queue
    UNION ALL
    SELECT s.queue, 'running', count(*) FROM workflow_status s
     WHERE p_counts AND s.status = 'PENDING' AND s.queue IS NOT NULL AND (p_name IS NULL OR s.queue = p_name)
     GROUP BY s.queue
    UNION ALL
    SELECT s.queue, 'running', count(*) FROM workflow_status s
     WHERE p_counts AND s.status = 'SUSPENDED' AND s.queue IS NOT NULL AND (p_name IS NULL OR s.queue = p_name)
     GROUP BY s.queue
    UNION ALL
    SELECT s.queue, 'blocked', count(*) FROM workflow_status s
     WHERE p_counts AND s.status = 'BLOCKED' AND s.attention IS NOT NULL AND s.queue IS NOT NULL
       AND (p_name IS NULL OR s.queue = p_name)
     GROUP BY s.queue
  )
  SELECT q, coalesce(sum(c.n) FILTER (WHERE c.what = 'waiting'), 0)::bigint,
         coalesce(sum(c.n) FILTER (WHERE c.what = 'delayed'), 0)::bigint,
         coalesce(sum(c.n) FILTER (WHERE c.what = 'running'), 0)::bigint,
         coalesce(sum(c.n) FILTER (WHERE c.what = 'blocked'), 0)::bigint
    FROM queue q
    LEFT JOIN counts c ON c.queue = q.name
   WHERE p_name IS NULL OR q.name = p_name
   GROUP BY q.name
   ORDER BY q.name
$$;
