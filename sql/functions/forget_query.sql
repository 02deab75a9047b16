-- Nobody waits for the answer any more.
CREATE OR REPLACE FUNCTION forget_query(p_workflow_id text, p_request_id uuid) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  DELETE FROM query_request q WHERE q.workflow_id = p_workflow_id AND q.request_id = p_request_id
$$;
