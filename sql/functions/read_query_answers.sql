-- Answers to questions: one query for everyone who waits in a process. Silent about those that are still open.
--   answered  reply or error
--   ended     the workflow has ended (found_status) without answering
--   missing   there is no such workflow any more
CREATE OR REPLACE FUNCTION read_query_answers(p_workflow_ids text[], p_request_ids uuid[])
RETURNS TABLE (item integer, answer text, reply text, error text, found_status text)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT r.place::integer,
         CASE WHEN q.reply IS NOT NULL OR q.error IS NOT NULL THEN 'answered'
              WHEN s.workflow_id IS NULL THEN 'missing' ELSE 'ended' END,
         q.reply, q.error, s.status
    FROM unnest(p_workflow_ids, p_request_ids) WITH ORDINALITY AS r (workflow_id, request_id, place)
    LEFT JOIN query_request q ON q.workflow_id = r.workflow_id AND q.request_id = r.request_id
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
   WHERE q.reply IS NOT NULL OR q.error IS NOT NULL OR s.workflow_id IS NULL
      OR s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
$$;
