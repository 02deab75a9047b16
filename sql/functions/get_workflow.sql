-- One workflow, in the form of find_workflows; no row when it is not there.
CREATE OR REPLACE FUNCTION get_workflow(p_workflow_id text, p_payload boolean)
RETURNS TABLE (
  workflow workflow_status, created_us bigint, input text, output text, error text, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT s, (extract(epoch FROM s.created_at) * 1000000)::bigint, i.input, o.output, o.error, false
    FROM workflow_status s
    LEFT JOIN workflow_input i ON p_payload AND i.workflow_id = s.workflow_id
    LEFT JOIN workflow_outcome o ON p_payload AND o.workflow_id = s.workflow_id
   WHERE s.workflow_id = p_workflow_id
$$;
