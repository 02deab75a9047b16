-- The end of a workflow that makes no progress: livelocked by version conflicts, or stuck. A control operation, so it does
-- not compare the version, which is what keeps moving; but it acts only while the given execution is still the owner.
CREATE OR REPLACE FUNCTION fail_stuck_workflow(p_workflow_id text, p_token uuid, p_nonce uuid, p_error text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_epoch bigint;
BEGIN
  UPDATE workflow_status s
     SET status = 'ERROR', owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
         completed_at = v_now, attention = 'STUCK', attention_detail = 'No progress: see the recorded error.'
   WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token
  RETURNING s.epoch INTO v_epoch;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM end_ownership(ARRAY[p_workflow_id], 'stuck', p_nonce);
  INSERT INTO workflow_outcome (workflow_id, status, error, epoch, nonce, recorded_at)
  VALUES (p_workflow_id, 'ERROR', p_error, v_epoch, p_nonce, v_now);
  PERFORM wake_waiters(ARRAY[p_workflow_id]);
  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, status_before, status_after, acted_at)
  VALUES (p_nonce, p_workflow_id, 'fail', 'holdfast', 'no progress', 'PENDING', 'ERROR', v_now);
END
$$;
