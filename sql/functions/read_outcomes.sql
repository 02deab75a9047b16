-- What became of these workflows: one query for everyone who waits in a process. status is null for one that is not there.
-- What is answered is final, so a primary that was replaced must not say it: see await_standbys.
CREATE OR REPLACE FUNCTION read_outcomes(p_workflow_ids text[])
RETURNS TABLE (workflow_id text, status text, output text, error text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT r.workflow_id, s.status, o.output, o.error
    FROM unnest(p_workflow_ids) AS r (workflow_id)
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
    LEFT JOIN workflow_outcome o ON o.workflow_id = r.workflow_id
   WHERE s.workflow_id IS NULL OR o.workflow_id IS NOT NULL;
  IF FOUND THEN
    PERFORM await_standbys();
  END IF;
END
$$;
