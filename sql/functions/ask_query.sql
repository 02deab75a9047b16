-- Asks a question about a workflow's state: whoever runs it answers (open_queries, answer_query), and one that is unloaded is
-- woken. Asked again with the same ID, by a retry, it is one question.
--
--   answer null       asked
--   answer 'missing'  there is no such workflow
--   answer 'ended'    it has ended (found_status): nobody would answer
-- Clears away some questions for whose answers nobody waits any more; their askers have died.
CREATE OR REPLACE FUNCTION ask_query(
  p_workflow_id text, p_request_id uuid, p_name text, p_arguments text, p_timeout_ms bigint,
  OUT answer text, OUT found_status text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  DELETE FROM query_request q
   WHERE (q.workflow_id, q.request_id) IN (
     SELECT e.workflow_id, e.request_id FROM query_request e WHERE e.expires_at < v_now LIMIT 100 FOR UPDATE SKIP LOCKED);
  -- As send_items does: what is asked must not outlive a deletion.
  SELECT s.status INTO found_status FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR KEY SHARE;
  IF NOT FOUND THEN
    answer := 'missing';
  ELSIF found_status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER') THEN
    answer := 'ended';
  ELSE
    INSERT INTO query_request (workflow_id, request_id, name, arguments, asked_at, expires_at)
    VALUES (p_workflow_id, p_request_id, p_name, p_arguments, v_now, v_now + p_timeout_ms * interval '1 ms')
    ON CONFLICT (workflow_id, request_id) DO NOTHING;
    PERFORM wake_up(ARRAY[p_workflow_id]);
  END IF;
END
$$;
