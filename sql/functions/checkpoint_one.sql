-- The lone checkpoint: checkpoint_batch for exactly one step, without its set machinery. Answers null when recorded.
--
-- * The nonce is looked for in the statement that classifies, so that both see one snapshot: an earlier try whose reply was
--   lost may be committing at this very moment, and would be taken for somebody else's write between two statements.
-- * enable_seqscan: a plan made while the tables had one page would be kept for the session, and read them whole later.
CREATE OR REPLACE FUNCTION checkpoint_one(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid,
  p_seq integer, p_name text, p_kind text, p_output text, p_error text,
  p_attempts integer, p_attempt_errors text, p_child_id text, p_elapsed_ms integer,
  OUT item integer, OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint,
  OUT found_detail text
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
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                             record_version, epoch, nonce, started_at, completed_at)
    VALUES (p_workflow_id, p_seq, p_name, p_kind, p_output, p_error, p_attempts, p_attempt_errors, p_child_id,
            p_version + 1, v_epoch, p_nonce, v_now - p_elapsed_ms * interval '1 ms', v_now);
  ELSE
    SELECT 1, c.* INTO item, answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
     WHERE NOT EXISTS (SELECT FROM step_result x
                        WHERE x.workflow_id = p_workflow_id AND x.seq = p_seq AND x.nonce = p_nonce);
  END IF;
END
$$;
