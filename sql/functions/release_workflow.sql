-- An execution gives its workflow up without an outcome.
--   ENQUEUED  given back: anyone may claim it at once
--   DELAYED   given back, not to be claimed before p_wake_in_ms from now
--   BLOCKED   waits for a person or a deploy; p_attention says why
-- p_unspend_attempt: giving back at shutdown, or after meeting other writers, is not an attempt.
-- What anyone may claim at once is hinted at; the hint rides on a write that is rare.
-- answer is null when done, by this call or by an earlier one whose reply was lost; else see classify_refusal.
CREATE OR REPLACE FUNCTION release_workflow(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid,
  p_status text, p_wake_in_ms bigint, p_unspend_attempt boolean, p_attention text, p_attention_detail text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  PERFORM FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    PERFORM end_ownership(ARRAY[p_workflow_id], CASE p_status WHEN 'BLOCKED' THEN 'blocked' ELSE 'released' END, p_nonce);
    UPDATE workflow_status s
       SET status = p_status, owner_token = NULL, record_version = p_version + 1, updated_at = v_now,
           wake_at = v_now + p_wake_in_ms * interval '1 ms',
           attempts = CASE WHEN p_unspend_attempt THEN greatest(s.attempts - 1, 0) ELSE s.attempts END,
           attention = p_attention, attention_detail = p_attention_detail
     WHERE s.workflow_id = p_workflow_id;
    IF p_status = 'ENQUEUED' THEN
      PERFORM pg_notify(current_schema() || '.work', '');
    END IF;
  ELSE
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, NULL) c
     WHERE NOT EXISTS (SELECT FROM ended_ownership o WHERE o.workflow_id = p_workflow_id AND o.nonce = p_nonce);
  END IF;
END
$$;
