-- The steps of a workflow of which nobody knows what became of them: their bodies were begun, and no result is recorded. Text for
-- people, null when there are none. Where an execution runs the workflow, they may be under way. What a rollback has undone is over.
CREATE OR REPLACE FUNCTION unknown_outcomes(p_workflow_id text) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT format('Nobody knows what became of: %s. Find out, and record it with admin.repairStep.',
                string_agg(format('step "%s" (number %s)', u.name, u.seq), ', ' ORDER BY u.seq))
    FROM (
      SELECT i.seq, i.name
        FROM step_intent i
       WHERE i.workflow_id = p_workflow_id AND i.kind = 'step'
         AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq)
         AND NOT EXISTS (SELECT FROM step_intent c JOIN step_result d ON d.workflow_id = c.workflow_id AND d.seq = c.seq
                          WHERE c.workflow_id = i.workflow_id AND c.undoes = i.seq)
       ORDER BY i.seq
       LIMIT 20
    ) u
  HAVING count(*) > 0
$$;
