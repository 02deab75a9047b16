-- Enqueues a workflow for a workflow: the row, its input and its deduplication ID come in the transaction of the checkpoint
-- that records it, so that a parent that lost ownership enqueues nothing and a recorded one is never enqueued twice.
--
-- Answers as record_intent; besides, nothing being written then,
--   no_queue      there is no queue of this name (found_detail)
--   deduplicated  another workflow (found_detail) holds the deduplication ID, and p_on_conflict is 'reject'
-- When answer is null, child_id is the workflow that was recorded: with 'attach', or debounced, possibly another one than asked
-- for.
CREATE OR REPLACE FUNCTION record_enqueue(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text, p_kind text,
  p_child_id text, p_child_name text, p_child_instance text, p_child_input text, p_child_close text,
  p_child_max_attempts integer, p_child_timeout_ms bigint, p_child_attributes text,
  p_queue text, p_priority integer, p_key text, p_delay_ms bigint, p_deduplication_id text, p_window_ms bigint,
  p_on_conflict text, p_cancelled_error text, p_debounce_key text, p_max_wait_ms bigint,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT child_id text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '50ms'
AS $$
DECLARE
  v_epoch   bigint;
  v_refused record;
BEGIN
  SELECT s.epoch INTO v_epoch FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT i.child_id, c.* INTO child_id, answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
      LEFT JOIN step_intent i ON i.workflow_id = p_workflow_id AND i.seq = p_seq AND i.nonce = p_nonce;
    IF child_id IS NOT NULL THEN
      answer := NULL;
    END IF;
    RETURN;
  END IF;

  LOOP
    SELECT e.* INTO v_refused
      FROM enqueue_items(
             ARRAY[p_child_id], ARRAY[p_nonce], ARRAY[p_child_name], ARRAY[p_child_instance], ARRAY[p_child_input],
             ARRAY[p_child_max_attempts], ARRAY[p_child_timeout_ms], ARRAY[p_child_attributes], ARRAY[p_queue],
             ARRAY[p_priority], ARRAY[p_key], ARRAY[p_delay_ms], ARRAY[p_deduplication_id], ARRAY[p_window_ms],
             p_workflow_id, p_seq, p_child_close, ARRAY[p_cancelled_error], ARRAY[p_debounce_key], ARRAY[p_max_wait_ms]) e;
    EXIT WHEN v_refused.answer IS DISTINCT FROM 'missing';
  END LOOP;
  child_id := p_child_id;
  IF v_refused.answer = 'debounced' OR v_refused.answer = 'deduplicated' AND p_on_conflict = 'attach' THEN
    child_id := v_refused.found_detail;
  ELSIF v_refused.answer = 'exists' AND v_refused.found_detail <> p_child_name THEN
    answer := 'child_name_taken';
  ELSIF v_refused.answer IN ('no_queue', 'deduplicated') THEN
    answer := v_refused.answer;
  END IF;
  IF answer IS NOT NULL THEN
    found_detail := v_refused.found_detail;
    child_id := NULL;
    RETURN;
  END IF;

  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = clock() WHERE s.workflow_id = p_workflow_id;
  INSERT INTO step_intent (workflow_id, seq, name, kind, child_id, record_version, epoch, nonce, recorded_at)
  VALUES (p_workflow_id, p_seq, p_name, p_kind, record_enqueue.child_id, p_version + 1, v_epoch, p_nonce, clock());
END
$$;
