-- A workflow sends a message: it is in the receiver's box in the transaction of the checkpoint that records it, so that a
-- sender that lost ownership sends nothing, and a recorded message is never sent twice.
--
-- answer is null when the send is recorded under its nonce, by this call or by an earlier one whose reply was lost; else see
-- classify_refusal, and, nothing being written then,
--   no_receiver     there is no workflow to receive it
--   receiver_ended  it has ended (found_detail: its status)
-- p_message_id is the idempotency key that the code gave, or null.
CREATE OR REPLACE FUNCTION record_send(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text,
  p_receiver text, p_topic text, p_payload text, p_message_id text, p_output text, p_elapsed_ms integer,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '50ms'
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_epoch   bigint;
  v_refused record;
BEGIN
  SELECT s.epoch INTO v_epoch FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
     WHERE NOT EXISTS (SELECT FROM step_result x
                        WHERE x.workflow_id = p_workflow_id AND x.seq = p_seq AND x.nonce = p_nonce);
    RETURN;
  END IF;
  SELECT s.* INTO v_refused
    FROM send_items(ARRAY[p_receiver], ARRAY[coalesce(p_message_id, p_nonce::text)], ARRAY[p_topic], ARRAY[p_payload],
                    p_workflow_id) s;
  IF v_refused.answer IS NOT NULL THEN
    answer := CASE v_refused.answer WHEN 'missing' THEN 'no_receiver' ELSE 'receiver_ended' END;
    found_detail := v_refused.found_status;
    RETURN;
  END IF;
  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now WHERE s.workflow_id = p_workflow_id;
  INSERT INTO step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce, started_at, completed_at)
  VALUES (p_workflow_id, p_seq, p_name, 'send', p_output, 1, p_version + 1, v_epoch, p_nonce,
          v_now - p_elapsed_ms * interval '1 ms', v_now);
END
$$;
