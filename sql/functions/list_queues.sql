-- The queues by name; with p_name that one only, and with what waits and runs in it (counted, which takes a while for a
-- long line).
CREATE OR REPLACE FUNCTION list_queues(p_name text)
RETURNS TABLE (definition queue, waiting bigint, delayed bigint, running bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT q,
         CASE WHEN p_name IS NOT NULL THEN
           (SELECT count(*) FROM workflow_status s WHERE s.queue = q.name AND s.status = 'ENQUEUED') END,
         CASE WHEN p_name IS NOT NULL THEN
           (SELECT count(*) FROM workflow_status s WHERE s.queue = q.name AND s.status = 'DELAYED') END,
         CASE WHEN p_name IS NOT NULL THEN
           (SELECT count(*) FROM workflow_status s WHERE s.queue = q.name AND s.status IN ('PENDING', 'SUSPENDED')) END
    FROM queue q
   WHERE p_name IS NULL OR q.name = p_name
   ORDER BY q.name
$$;
