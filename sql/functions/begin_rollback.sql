-- An execution whose workflow has failed or run out of time, and has something to undo, says so and gives it up: the rollback is an
-- execution of its own, of whoever claims it. Records the marker as number p_seq, above every number used before: a result of kind
-- 'rollback', named for what led to it (failed, timed-out), whose error is the one that the workflow will end with.
--
-- The rollback has a budget of attempts of its own: those of the workflow may be used up.
--
-- answer is null when done, by this call or by an earlier one whose reply was lost; else see classify_refusal. reply is not used.
CREATE OR REPLACE FUNCTION begin_rollback(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_cause text, p_error text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_epoch bigint;
BEGIN
  PERFORM FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
     WHERE NOT EXISTS (SELECT FROM ended_ownership o WHERE o.workflow_id = p_workflow_id AND o.nonce = p_nonce);
    RETURN;
  END IF;

  PERFORM end_ownership(ARRAY[p_workflow_id], 'rolling back', p_nonce);
  UPDATE workflow_status s
     SET status = 'ENQUEUED', owner_token = NULL, record_version = p_version + 1, updated_at = v_now, wake_at = NULL,
         attempts = 0, attention = NULL, attention_detail = NULL
   WHERE s.workflow_id = p_workflow_id
  RETURNING s.epoch INTO v_epoch;
  INSERT INTO step_result (workflow_id, seq, name, kind, error, attempts, record_version, epoch, nonce, started_at, completed_at)
  VALUES (p_workflow_id, p_seq, p_cause, 'rollback', p_error, 1, p_version + 1, v_epoch, p_nonce, v_now, v_now);
  PERFORM pg_notify(current_schema() || '.work', '');
END
$$;
