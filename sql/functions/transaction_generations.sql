-- Which generations the calls of a workflow belong to, for its owner: asked once by an execution that runs a transaction in another
-- database. No row: it is not the owner any more. The first question of a workflow makes its first generation.
CREATE OR REPLACE FUNCTION transaction_generations(p_workflow_id text, p_token uuid)
RETURNS TABLE (from_seq integer, generation bigint, installation_id uuid)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
BEGIN
  -- Waits for a control operation that is taking the workflow away.
  PERFORM FROM workflow_status s WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM transaction_generation g WHERE g.workflow_id = p_workflow_id AND g.from_seq = 0) THEN
    INSERT INTO transaction_generation (workflow_id, from_seq, generation)
    VALUES (p_workflow_id, 0, nextval('transaction_generation_number'));
  END IF;
  RETURN QUERY
  SELECT g.from_seq, g.generation, i.installation_id
    FROM transaction_generation g CROSS JOIN installation i
   WHERE g.workflow_id = p_workflow_id;
END
$$;
