-- What has become of a transaction whose conclude_transaction and COMMIT were not answered, decided for good.
--
-- Both may still be on their way. Whoever holds the row's lock knows that they have not arrived, or are over; in a statement that sees
-- what was committed before the lock came free, the nonce is on record then or it is not. If it is not, the version moves on while
-- the lock is held, so that what arrives later is refused.
--
-- The next write of the owner is at version + 1 either way. Asked again, it says the same. lock_timeout: the transaction is still open;
-- ask again.
CREATE OR REPLACE FUNCTION settle_transaction(
  p_workflow_id text, p_token uuid, p_version bigint, p_seq integer, p_nonce uuid
)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '1s'
AS $$
BEGIN
  PERFORM FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR NO KEY UPDATE;
  IF EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq AND r.nonce = p_nonce) THEN
    RETURN true;
  END IF;
  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = clock()
   WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version;
  RETURN false;
END
$$;
