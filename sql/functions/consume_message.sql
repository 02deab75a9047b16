-- A workflow receives: takes the longest waiting message of a topic and records it as the result of the call, in one
-- transaction under the check, so that a message is received once, whoever else believes to own the workflow.
--
--   answer null     recorded under its nonce, by this call or by an earlier one whose reply was lost; reply is the result
--   answer 'empty'  no message of the topic waits, and p_otherwise is null; nothing was written
--   else            see classify_refusal
-- p_otherwise: what to record when no message waits, since the time is up.
CREATE OR REPLACE FUNCTION consume_message(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_topic text, p_otherwise text,
  p_elapsed_ms integer,
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
    SELECT r.output, c.* INTO reply, answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
      LEFT JOIN step_result r ON r.workflow_id = p_workflow_id AND r.seq = p_seq AND r.nonce = p_nonce;
    IF reply IS NOT NULL THEN
      answer := NULL;
    END IF;
    RETURN;
  END IF;

  -- Only whoever holds the workflow's row takes its messages away: none of them can be taken meanwhile.
  UPDATE message m SET consumed_seq = p_seq
   WHERE m.workflow_id = p_workflow_id
     AND m.message_id = (
       SELECT w.message_id FROM message w
        WHERE w.workflow_id = p_workflow_id AND w.topic = p_topic AND w.consumed_seq IS NULL
        ORDER BY w.position LIMIT 1)
  RETURNING m.payload INTO reply;
  reply := coalesce(reply, p_otherwise);
  IF reply IS NULL THEN
    answer := 'empty';
    RETURN;
  END IF;
  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now WHERE s.workflow_id = p_workflow_id;
  INSERT INTO step_result (workflow_id, seq, name, kind, output, attempts, record_version, epoch, nonce, started_at, completed_at)
  VALUES (p_workflow_id, p_seq, p_topic, 'receive', reply, 1, p_version + 1, v_epoch, p_nonce,
          v_now - p_elapsed_ms * interval '1 ms', v_now);
END
$$;
