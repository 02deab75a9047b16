-- Answers a question: p_reply, or p_error. The first answer stays; one that nobody waits for any more is dropped.
CREATE OR REPLACE FUNCTION answer_query(p_workflow_id text, p_request_id uuid, p_reply text, p_error text) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  UPDATE query_request q SET reply = p_reply, error = p_error
   WHERE q.workflow_id = p_workflow_id AND q.request_id = p_request_id AND q.reply IS NULL AND q.error IS NULL
$$;
