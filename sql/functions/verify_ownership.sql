-- Which of these executors still own their workflow: asked before a step body by an executor whose lease may have lapsed, and
-- together with the history of what was just claimed. A primary that was replaced says nothing: see await_standbys.
CREATE OR REPLACE FUNCTION verify_ownership(p_workflow_ids text[], p_tokens uuid[])
RETURNS TABLE (item integer)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  PERFORM await_standbys();
  RETURN QUERY
  SELECT r.position::integer
    FROM unnest(p_workflow_ids, p_tokens) WITH ORDINALITY AS r (workflow_id, token, position)
    JOIN workflow_status s ON s.workflow_id = r.workflow_id AND s.owner_token = r.token;
END
$$;
