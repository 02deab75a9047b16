-- The children whose outcome these workflows have not recorded yet: what they will wait for, or ask for, when they run again.
-- A child that an earlier run started, before a rewind took the step away, is none of them.
--
-- enable_hashjoin, whatever the caller has set: by nested loops a parent of 10,000 children reads its steps 10,000 times.
CREATE OR REPLACE FUNCTION unresolved_children(p_workflow_ids text[])
RETURNS TABLE (parent_id text, seq integer, child_id text)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = on
AS $$
  SELECT i.workflow_id, i.seq, i.child_id
    FROM step_intent i
   WHERE i.workflow_id = ANY (p_workflow_ids) AND i.child_id IS NOT NULL
     AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.child_id = i.child_id)
$$;
