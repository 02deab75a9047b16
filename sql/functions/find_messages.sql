-- Which of these topics of these workflows have a message that waits: one query for all executions of a process that wait
-- to receive.
CREATE OR REPLACE FUNCTION find_messages(p_workflow_ids text[], p_topics text[])
RETURNS TABLE (item integer)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT r.place::integer
    FROM unnest(p_workflow_ids, p_topics) WITH ORDINALITY AS r (workflow_id, topic, place)
   WHERE EXISTS (SELECT FROM message m
                  WHERE m.workflow_id = r.workflow_id AND m.topic = r.topic AND m.consumed_seq IS NULL)
$$;
