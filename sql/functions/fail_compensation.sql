-- A compensation has failed for good: the rollback stops there. Keeps the error with the planned compensation p_seq, and blocks the
-- workflow for a person to look: COMPENSATION_FAILED.
--
-- answer is null when done, by this call or by an earlier one whose reply was lost; else see classify_refusal. reply is not used.
CREATE OR REPLACE FUNCTION fail_compensation(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_error text, p_detail text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  PERFORM FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, NULL) c
     WHERE NOT EXISTS (SELECT FROM ended_ownership o WHERE o.workflow_id = p_workflow_id AND o.nonce = p_nonce);
    RETURN;
  END IF;

  PERFORM end_ownership(ARRAY[p_workflow_id], 'blocked', p_nonce);
  UPDATE workflow_status s
     SET status = 'BLOCKED', owner_token = NULL, record_version = p_version + 1, updated_at = v_now,
         attention = 'COMPENSATION_FAILED', attention_detail = p_detail
   WHERE s.workflow_id = p_workflow_id;
  UPDATE step_intent i SET failure = p_error
   WHERE i.workflow_id = p_workflow_id AND i.seq = p_seq AND i.kind = 'compensation';
END
$$;
