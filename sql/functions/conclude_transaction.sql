-- checkpoint_transaction for who sends COMMIT behind it without waiting for its answer: what is refused is an error, so that the
-- COMMIT is skipped, or becomes a ROLLBACK.
--
-- HF021 is that error; its detail is the JSON text that checkpoint_transaction would have answered with. A procedure, since the reply
-- of one has no row to read.
--
-- A refusal ends the transaction here. And since this statement and COMMIT may still be on their way when the connection breaks, the
-- lock of the workflow's row does not tell what becomes of them: settle_transaction does.
--
-- One statement that updates and inserts: as two, it took 10 of 390 microseconds of a transaction more.
CREATE OR REPLACE PROCEDURE conclude_transaction(
  p_marker text, p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text,
  p_output text, p_attempts integer, p_attempt_errors text, p_elapsed_ms integer
)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = 5000
AS $$
DECLARE
  v_refusal record;
  v_detail  json;
BEGIN
  IF current_setting('holdfast.transaction', true) IS NOT DISTINCT FROM p_marker THEN
    WITH owned AS (
      UPDATE workflow_status s SET record_version = p_version + 1, updated_at = clock()
       WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      RETURNING s.epoch, s.updated_at
    )
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                             record_version, epoch, nonce, started_at, completed_at)
    SELECT p_workflow_id, p_seq, p_name, 'transaction', p_output, NULL, p_attempts, p_attempt_errors, NULL,
           p_version + 1, o.epoch, p_nonce, o.updated_at - p_elapsed_ms * interval '1 ms', o.updated_at
      FROM owned o;
    IF FOUND THEN
      RETURN;
    END IF;
    SELECT c.* INTO v_refusal FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c;
    v_detail := json_build_object('answer', v_refusal.answer, 'version', v_refusal.found_version, 'detail', v_refusal.found_detail);
  ELSE
    v_detail := json_build_object('answer', 'ended');
  END IF;
  RAISE EXCEPTION 'The record of a transaction was refused: %.', v_detail ->> 'answer'
    USING ERRCODE = 'HF021', DETAIL = v_detail::text;
END
$$;
