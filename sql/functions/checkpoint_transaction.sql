-- The last statement of a transaction that a workflow's @Transaction body has run in: records its result, under the check of
-- token and version, so that body and record commit together or not at all. It never ends the transaction.
--
--   'recorded'           the row stays locked until the transaction has ended
--   'ended'              this is not the transaction that was begun with p_marker: the body has ended that one itself
--   'recorded before'    by an earlier transaction with this nonce, which has committed: this one would do everything again
--   else                 the answer of classify_refusal, with the version that was found; nothing was written
-- The reply is a JSON text with an answer, so that every client library reads it alike.
--
-- It waits for the row's lock, for which a flush of this or another process needs a moment: to give up would throw the body's
-- work away. Nobody who holds that lock waits for locks of the application. In a transaction of one snapshot, a row that has
-- been written since that was taken is a serialisation failure (40001): the transaction has to begin again.
--
-- The statements of checkpoint_one, not a call of it: that would lock the row a second time, and takes a nonce on record for its own.
CREATE OR REPLACE FUNCTION checkpoint_transaction(
  p_marker text, p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text,
  p_output text, p_attempts integer, p_attempt_errors text, p_elapsed_ms integer
)
RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '5s'
AS $$
DECLARE
  v_now     timestamptz;
  v_epoch   bigint;
  v_refusal record;
BEGIN
  IF current_setting('holdfast.transaction', true) IS DISTINCT FROM p_marker THEN
    RETURN '{"answer":"ended"}';
  END IF;
  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = clock()
   WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
  RETURNING s.epoch, s.updated_at INTO v_epoch, v_now;
  IF FOUND THEN
    INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                             record_version, epoch, nonce, started_at, completed_at)
    VALUES (p_workflow_id, p_seq, p_name, 'transaction', p_output, NULL, p_attempts, p_attempt_errors, NULL,
            p_version + 1, v_epoch, p_nonce, v_now - p_elapsed_ms * interval '1 ms', v_now);
    RETURN '{"answer":"recorded"}';
  END IF;
  IF EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq AND r.nonce = p_nonce) THEN
    RETURN '{"answer":"recorded before"}';
  END IF;
  SELECT c.* INTO v_refusal FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c;
  RETURN json_build_object('answer', v_refusal.answer, 'version', v_refusal.found_version, 'detail', v_refusal.found_detail);
END
$$;
