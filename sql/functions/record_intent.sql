-- Records what a step has to make durable before it can wait: when a sleep ends (p_sleep_ms from the database's clock, or
-- the absolute p_wake_at), or which child workflow it started. The child is created in the same transaction, owned by the
-- calling executor, so that a parent that lost ownership creates none and a recorded one is never created twice.
--
-- answer is null when the intent is recorded under its nonce, by this call or by an earlier one whose reply was lost;
-- else see classify_refusal, and
--   child_name_taken  the child's ID belongs to a workflow of another name (found_detail); nothing was written
-- child is 'created' when the caller has to run it, 'attached' when someone else does or did.
--
-- Only the child's insert can wait, for a transaction that is inserting or deleting that ID; lock_timeout bounds it as in
-- start_batch. Several intents in one statement must come in the order of their child IDs, in collation "C": the order in
-- which start_batch inserts.
CREATE OR REPLACE FUNCTION record_intent(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_seq integer, p_name text, p_kind text,
  p_sleep_ms bigint, p_wake_at timestamptz,
  p_child_id text, p_child_name text, p_child_instance text, p_child_token uuid, p_child_input text, p_child_close text,
  p_child_max_attempts integer, p_child_timeout_ms bigint, p_child_attributes text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT remaining_ms double precision, OUT child text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '50ms'
AS $$
DECLARE
  v_now    timestamptz := clock();
  v_owner  workflow_status%ROWTYPE;
  v_wake   timestamptz := coalesce(p_wake_at, v_now + p_sleep_ms * interval '1 ms');
  v_known  text;
  v_mine   uuid;
BEGIN
  SELECT * INTO v_owner FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT i.nonce, i.wake_at, c.*
      INTO v_mine, v_wake, answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, p_seq) c
      LEFT JOIN step_intent i ON i.workflow_id = p_workflow_id AND i.seq = p_seq AND i.nonce = p_nonce;
    IF v_mine IS NULL THEN
      RETURN;
    END IF;
    answer := NULL;
  ELSE
    IF p_child_id IS NOT NULL THEN
      LOOP
        INSERT INTO workflow_status (workflow_id, name, instance, status, owner_token, epoch, record_version, executor_id,
                                     incarnation, attempts, max_attempts, app_version, timeout_ms, deadline, attributes,
                                     parent_id, parent_seq, parent_close, created_at, updated_at, started_at, owned_at,
                                     owned_reason)
        VALUES (p_child_id, p_child_name, p_child_instance, 'PENDING', p_child_token, 1, 1, v_owner.executor_id,
                v_owner.incarnation, 1, p_child_max_attempts, v_owner.app_version, p_child_timeout_ms,
                v_now + p_child_timeout_ms * interval '1 ms', p_child_attributes::jsonb,
                p_workflow_id, p_seq, p_child_close, v_now, v_now, v_now, v_now, 'started')
        ON CONFLICT (workflow_id) DO NOTHING;
        IF FOUND THEN
          INSERT INTO workflow_input (workflow_id, input, nonce, created_at)
          VALUES (p_child_id, p_child_input, p_nonce, v_now);
          EXIT;
        END IF;
        SELECT s.name INTO v_known FROM workflow_status s WHERE s.workflow_id = p_child_id;
        -- Deleted since the insert met it: the ID is free again.
        CONTINUE WHEN NOT FOUND;
        EXIT WHEN v_known = p_child_name;
        answer := 'child_name_taken';
        found_detail := v_known;
        RETURN;
      END LOOP;
    END IF;
    UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now WHERE s.workflow_id = p_workflow_id;
    INSERT INTO step_intent (workflow_id, seq, name, kind, child_id, wake_at, record_version, epoch, nonce, recorded_at)
    VALUES (p_workflow_id, p_seq, p_name, p_kind, p_child_id, v_wake, p_version + 1, v_owner.epoch, p_nonce, v_now);
  END IF;
  remaining_ms := extract(epoch FROM v_wake - v_now) * 1000;
  IF p_child_id IS NOT NULL THEN
    PERFORM FROM workflow_status s WHERE s.workflow_id = p_child_id AND s.owner_token = p_child_token;
    child := CASE WHEN FOUND THEN 'created' ELSE 'attached' END;
  END IF;
END
$$;
