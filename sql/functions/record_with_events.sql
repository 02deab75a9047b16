-- Records a result together with the events that belong to it: a call of outbox.add, or a step whose body has called it. The
-- events are there exactly if the result is. Answers as checkpoint_one; reply is not used.
CREATE OR REPLACE FUNCTION record_with_events(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text, p_kind text, p_output text,
  p_attempts integer, p_attempt_errors text, p_elapsed_ms integer, p_events text,
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
  IF FOUND THEN
    UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now
      WHERE s.workflow_id = p_workflow_id RETURNING s.epoch INTO v_epoch;
    INSERT INTO step_result (workflow_id, seq, name, kind, output, attempts, attempt_errors, record_version, epoch, nonce,
                             started_at, completed_at)
    VALUES (p_workflow_id, p_seq, p_name, p_kind, p_output, p_attempts, p_attempt_errors, p_version + 1, v_epoch, p_nonce,
            v_now - p_elapsed_ms * interval '1 ms', v_now);
    PERFORM put_events(p_workflow_id, p_seq, p_events::json);
  ELSE
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
     WHERE NOT EXISTS (SELECT FROM step_result x
                        WHERE x.workflow_id = p_workflow_id AND x.seq = p_seq AND x.nonce = p_nonce);
  END IF;
END
$$;
