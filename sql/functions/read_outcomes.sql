-- What became of these workflows: one query for everyone who waits in a process. status is null for one that is not there.
CREATE OR REPLACE FUNCTION read_outcomes(p_workflow_ids text[])
RETURNS TABLE (workflow_id text, status text, output text, error text)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT r.workflow_id, s.status, o.output, o.error
    FROM unnest(p_workflow_ids) AS r (workflow_id)
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
    LEFT JOIN workflow_outcome o ON o.workflow_id = r.workflow_id
   WHERE s.workflow_id IS NULL OR o.workflow_id IS NOT NULL
$$;
