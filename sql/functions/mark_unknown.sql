-- Records that nobody knows what became of a step's body, after p_attempts runs of it: in its intent, or in one that is made
-- for this, where the step records none before its body. Whoever replays the workflow does not run the body again before
-- somebody has found out.
--
-- answer is null when recorded under its nonce, by this call or by an earlier one whose reply was lost; else see
-- classify_refusal. reply is not used.
CREATE OR REPLACE FUNCTION mark_unknown(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text, p_attempts integer,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_epoch bigint;
BEGIN
  SELECT s.epoch INTO v_epoch FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
     WHERE NOT EXISTS (SELECT FROM step_intent i
                        WHERE i.workflow_id = p_workflow_id AND i.seq = p_seq AND i.nonce = p_nonce);
    RETURN;
  END IF;
  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now WHERE s.workflow_id = p_workflow_id;
  INSERT INTO step_intent AS i (workflow_id, seq, name, kind, record_version, epoch, nonce, recorded_at, attempts)
  VALUES (p_workflow_id, p_seq, p_name, 'step', p_version + 1, v_epoch, p_nonce, v_now, p_attempts)
  ON CONFLICT (workflow_id, seq) DO UPDATE
    SET nonce = excluded.nonce, attempts = greatest(i.attempts, excluded.attempts);
END
$$;
