-- An execution in which nothing runs and everything waits gives its workflow up until something of that comes: until the
-- earliest recorded moment, an outcome or an event of another workflow, or a message. p_waits is a JSON list of what it waits
-- for: {"kind": "timer"}, {"kind": "outcome", "workflowId"}, {"kind": "message", "topic"}, {"kind": "event", "workflowId", "key"}.
--
--   answer null   suspended, by this call or by an earlier one whose reply was lost
--   'due'         something of it is there already, or somebody waits for an answer to a question about the workflow's state;
--                 nothing was written, the execution goes on
--   'busy'        somebody is writing to one of the workflows waited for; nothing was written
--   else          see classify_refusal
--
-- Being suspended is not an attempt: attempts bound the executions that end without saying so. Nor is a workflow that waits
-- stuck, whatever it was before.
--
-- Why nothing is missed: what is waited for is looked at by a statement that begins after this transaction has locked its own
-- row (messages and questions: see drain_wakeups) and has shared the lock of the others (outcomes and events: see wake_waiters). SKIP LOCKED,
-- since two workflows that wait for each other must not wait here too.
CREATE OR REPLACE FUNCTION suspend_workflow(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_waits jsonb,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_self    workflow_status%ROWTYPE;
  v_targets text[];
  v_found   bigint;
  v_free    bigint;
  v_wake_at timestamptz;
BEGIN
  SELECT * INTO v_self FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, NULL) c
     WHERE NOT EXISTS (SELECT FROM ended_ownership o WHERE o.workflow_id = p_workflow_id AND o.nonce = p_nonce);
    RETURN;
  END IF;

  SELECT array_agg(DISTINCT w ->> 'workflowId') INTO v_targets
    FROM jsonb_array_elements(p_waits) w WHERE w ->> 'workflowId' <> p_workflow_id;
  IF v_targets IS NOT NULL THEN
    SELECT count(*) INTO v_found FROM workflow_status s WHERE s.workflow_id = ANY (v_targets);
    SELECT count(*) INTO v_free FROM (
      SELECT FROM workflow_status s WHERE s.workflow_id = ANY (v_targets) ORDER BY s.workflow_id FOR SHARE SKIP LOCKED
    ) free;
    IF v_free < v_found THEN
      answer := 'busy';
      RETURN;
    END IF;
    -- One that is gone is something that its waiter has to hear of.
    IF v_found < cardinality(v_targets) THEN
      answer := 'due';
      RETURN;
    END IF;
  END IF;

  SELECT least(v_self.deadline, min(i.wake_at)) INTO v_wake_at
    FROM step_intent i
   WHERE i.workflow_id = p_workflow_id AND i.wake_at IS NOT NULL
     AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq);
  PERFORM FROM jsonb_array_elements(p_waits) w
    WHERE CASE w ->> 'kind'
            WHEN 'outcome' THEN
              EXISTS (SELECT FROM workflow_outcome o WHERE o.workflow_id = w ->> 'workflowId')
            WHEN 'event' THEN
              EXISTS (SELECT FROM event e WHERE e.workflow_id = w ->> 'workflowId' AND e.key = w ->> 'key')
              -- It will not be set any more.
              OR EXISTS (SELECT FROM workflow_outcome o WHERE o.workflow_id = w ->> 'workflowId')
              OR (starts_with(w ->> 'key', 'holdfast:update:') AND is_left_behind(w ->> 'workflowId', w ->> 'key'))
            WHEN 'message' THEN
              EXISTS (SELECT FROM message m
                       WHERE m.workflow_id = p_workflow_id AND m.topic = w ->> 'topic' AND m.consumed_seq IS NULL)
          END;
  IF FOUND OR v_wake_at <= v_now OR EXISTS (
       SELECT FROM query_request q
        WHERE q.workflow_id = p_workflow_id AND q.reply IS NULL AND q.error IS NULL AND q.expires_at > v_now) THEN
    answer := 'due';
    RETURN;
  END IF;

  INSERT INTO workflow_wait (waiter_id, target_id)
  SELECT p_workflow_id, t.target_id FROM unnest(v_targets) AS t (target_id)
  ON CONFLICT DO NOTHING;
  PERFORM end_ownership(ARRAY[p_workflow_id], 'suspended', p_nonce);
  UPDATE workflow_status s
     SET status = 'SUSPENDED', owner_token = NULL, record_version = p_version + 1, updated_at = v_now,
         wake_at = v_wake_at, attempts = greatest(s.attempts - 1, 0), attention = NULL, attention_detail = NULL
   WHERE s.workflow_id = p_workflow_id;
END
$$;
