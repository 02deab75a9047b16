-- Whether a transaction whose COMMIT was not answered has taken effect. Its checkpoint has locked the workflow's row until its
-- end, so whoever gets that lock knows that it has ended: a COMMIT that is still on its way cannot arrive any more. Then, in a
-- statement that sees what was committed before the lock came free, its nonce is on record or it never will be.
--
-- lock_timeout: the transaction is still open, of a connection that the server has not given up; ask again.
CREATE OR REPLACE FUNCTION transaction_outcome(p_workflow_id text, p_seq integer, p_nonce uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '1s'
AS $$
BEGIN
  PERFORM FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR NO KEY UPDATE;
  RETURN EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq AND r.nonce = p_nonce);
END
$$;
