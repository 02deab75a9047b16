-- The children of these workflows that are to end with them, and whose outcome they have not recorded yet: what they will wait
-- for, or ask for, when they run again. A child that an earlier run started, before a rewind took the step away, is none of
-- them; nor is one that a workflow has only attached to. A workflow that is being rolled back has none: it waits for nothing, and a
-- child that was cancelled with it must not run.
--
-- The shape holds for a parent of 10,000 children on tables without statistics, where the planner would compare every child
-- with every step (NOT EXISTS: minutes, EXCEPT: 0.1 s), or find every child among all of its parent's (a plain join: 25 s,
-- by primary key, which OFFSET 0 leaves as the only way: 0.1 s).
CREATE OR REPLACE FUNCTION unresolved_children(p_workflow_ids text[])
RETURNS TABLE (child_id text)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT s.workflow_id
    FROM (
      SELECT i.workflow_id, i.child_id
        FROM step_intent i
       WHERE i.workflow_id = ANY (ARRAY(
               SELECT p.workflow_id FROM unnest(p_workflow_ids) AS p (workflow_id)
                WHERE NOT EXISTS (SELECT FROM step_result m WHERE m.workflow_id = p.workflow_id AND m.kind = 'rollback')))
         AND i.child_id IS NOT NULL
      EXCEPT
      SELECT r.workflow_id, r.child_id
        FROM step_result r WHERE r.workflow_id = ANY (p_workflow_ids) AND r.child_id IS NOT NULL
    ) c
   CROSS JOIN LATERAL (
     SELECT w.workflow_id, w.parent_id, w.parent_close FROM workflow_status w WHERE w.workflow_id = c.child_id OFFSET 0
   ) s
   WHERE s.parent_id = c.workflow_id AND s.parent_close = 'cancel'
$$;
