-- Questions, the oldest first, that this executor has to answer: about workflows that it owns.
CREATE OR REPLACE FUNCTION open_queries(p_executor_id text, p_incarnation bigint, p_limit integer)
RETURNS TABLE (workflow_id text, request_id uuid, name text, arguments text)
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT q.workflow_id, q.request_id, q.name, q.arguments
    FROM query_request q
    JOIN workflow_status s ON s.workflow_id = q.workflow_id
   WHERE q.reply IS NULL AND q.error IS NULL AND q.expires_at > clock()
     AND s.status = 'PENDING' AND s.executor_id = p_executor_id AND s.incarnation = p_incarnation
   ORDER BY q.asked_at LIMIT p_limit
$$;
