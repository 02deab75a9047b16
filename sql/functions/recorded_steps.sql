-- How many steps a workflow has recorded, open ones included: the number that its next step will have.
CREATE OR REPLACE FUNCTION recorded_steps(p_workflow_id text) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT 1 + greatest(
    coalesce((SELECT max(r.seq) FROM step_result r WHERE r.workflow_id = p_workflow_id), -1),
    coalesce((SELECT max(i.seq) FROM step_intent i WHERE i.workflow_id = p_workflow_id), -1)
  )
$$;
