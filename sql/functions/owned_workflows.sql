-- What an executor owns by the database's account, to be compared with what it really runs.
CREATE OR REPLACE FUNCTION owned_workflows(p_executor_id text, p_incarnation bigint)
RETURNS TABLE (workflow_id text, token uuid, record_version bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off
AS $$
  SELECT s.workflow_id, s.owner_token, s.record_version
    FROM workflow_status s
   WHERE s.executor_id = p_executor_id AND s.incarnation = p_incarnation AND s.status = 'PENDING'
$$;
