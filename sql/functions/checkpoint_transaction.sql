-- The last statement of a transaction that a workflow's @Transaction body has run in: records its result, under the check of
-- token and version, so that body and record commit together or not at all. It never ends the transaction.
--
--   'recorded'           the row stays locked until the transaction has ended
--   'ended'              this is not the transaction that was begun with p_marker: the body has ended that one itself
--   else                 the answer of classify_refusal, with the version that was found; nothing was written
-- The reply is a JSON text with an answer, so that every client library reads it alike.
--
-- It waits for the row's lock, for which a flush of this or another process needs a moment: to give up would throw the body's
-- work away. Nobody who holds that lock waits for locks of the application. In a transaction of one snapshot, a row that has
-- been written since that was taken is a serialisation failure (40001): the transaction has to begin again.
CREATE OR REPLACE FUNCTION checkpoint_transaction(
  p_marker text, p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text,
  p_output text, p_attempts integer, p_attempt_errors text, p_elapsed_ms integer
)
RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '5s'
AS $$
DECLARE
  v_refusal record;
BEGIN
  IF current_setting('holdfast.transaction', true) IS DISTINCT FROM p_marker THEN
    RETURN '{"answer":"ended"}';
  END IF;
  PERFORM FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR NO KEY UPDATE;
  SELECT c.* INTO v_refusal
    FROM checkpoint_one(p_workflow_id, p_token, p_version, p_nonce, p_seq, p_name, 'transaction', p_output, NULL,
                        p_attempts, p_attempt_errors, NULL, p_elapsed_ms) c;
  IF v_refusal.answer IS NULL THEN
    RETURN '{"answer":"recorded"}';
  END IF;
  RETURN json_build_object('answer', v_refusal.answer, 'version', v_refusal.found_version, 'detail', v_refusal.found_detail);
END
$$;
