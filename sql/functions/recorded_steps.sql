-- The number that a workflow's next step will have: how many it has recorded, open ones and those of earlier runs included.
CREATE OR REPLACE FUNCTION recorded_steps(p_workflow_id text) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT greatest(
    (SELECT 1 + max(r.seq) FROM step_result r WHERE r.workflow_id = p_workflow_id),
    (SELECT 1 + max(i.seq) FROM step_intent i WHERE i.workflow_id = p_workflow_id),
    (SELECT s.first_seq FROM workflow_status s WHERE s.workflow_id = p_workflow_id)
  )
$$;
