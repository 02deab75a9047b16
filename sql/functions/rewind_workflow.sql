-- Takes a workflow back to before step p_to_step: results and intents from there on are deleted, an outcome as well, and it
-- becomes claimable with a fresh budget of attempts and a fresh deadline. From any status, a running one too: its execution
-- is fenced.
--
--   any status      done: ENQUEUED
--   refused 'step'  p_to_step is beyond the end of the record, or before the beginning of the run (continue-as-new); detail is
--                   the highest number allowed, the number after the last recorded step, which takes nothing away but the
--                   outcome; with the lowest in front of it where that is not 0
--
-- Children that the removed steps started are cancelled if they are to end with their parent and have not ended; the others
-- are left alone. The new run starts children of its own; a child whose ID the code gives explicitly is attached to instead.
-- Children of the remaining steps are treated as resume treats them.
--
-- Events go back to the values that they had before the step. Messages that the removed calls received wait again; what they
-- sent stays sent.
-- Events of the outbox that removed calls have added are taken back, unless they are delivered: then the new run adds them again,
-- under the same IDs.
-- Stream entries remain of earlier runs, and of the calls whose results remain; see retract_stream_entries.
--
-- The remaining rows keep their record versions, and so the order in which they are replayed.
CREATE OR REPLACE FUNCTION rewind_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_to_step integer, p_child_error text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now       timestamptz := clock();
  v_first     integer;
  v_steps     integer;
  v_removed   bigint;
  v_children  text[];
  v_cancelled text[];
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  v_steps := recorded_steps(p_workflow_id);
  SELECT s.first_seq INTO v_first FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
  IF p_to_step NOT BETWEEN v_first AND v_steps THEN
    result := 'refused';
    refusal := 'step';
    detail := concat_ws(' ', nullif(v_first, 0), v_steps);
    RETURN;
  END IF;

  SELECT count(*) INTO v_removed FROM (
    SELECT r.seq FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq >= p_to_step
    UNION
    SELECT i.seq FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.seq >= p_to_step
  ) removed;
  DELETE FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq >= p_to_step;
  DELETE FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.seq >= p_to_step;
  DELETE FROM event e WHERE e.workflow_id = p_workflow_id AND e.seq >= p_to_step;
  -- What transactions of the removed calls have left in other databases is not taken for that of the new ones.
  IF EXISTS (SELECT FROM transaction_generation g WHERE g.workflow_id = p_workflow_id) THEN
    DELETE FROM transaction_generation g WHERE g.workflow_id = p_workflow_id AND g.from_seq >= p_to_step;
    INSERT INTO transaction_generation (workflow_id, from_seq, generation)
    VALUES (p_workflow_id, p_to_step, nextval('transaction_generation_number'));
  END IF;
  -- What the removed calls received waits again, in its old place.
  UPDATE message m SET consumed_seq = NULL WHERE m.workflow_id = p_workflow_id AND m.consumed_seq >= p_to_step;
  PERFORM retract_stream_entries(p_workflow_id);
  PERFORM retract_events(p_workflow_id, p_to_step);
  -- The ownership that ended with the outcome; before anything of the outcome goes.
  PERFORM end_ownership(ARRAY[p_workflow_id], 'completed', o.nonce, o.recorded_at)
     FROM workflow_outcome o WHERE o.workflow_id = p_workflow_id;
  DELETE FROM workflow_outcome o WHERE o.workflow_id = p_workflow_id;
  UPDATE workflow_status s
     SET status = 'ENQUEUED', owner_token = NULL, record_version = s.record_version + 1, attempts = 0, wake_at = NULL,
         deadline = CASE WHEN s.queue IS NULL THEN v_now + s.timeout_ms * interval '1 ms' END, attention = NULL, attention_detail = NULL,
         updated_at = v_now, completed_at = NULL
   WHERE s.workflow_id = p_workflow_id;
  DELETE FROM workflow_wait w WHERE w.waiter_id = p_workflow_id;
  PERFORM retake_deduplication(ARRAY[p_workflow_id]);
  PERFORM record_control(ARRAY[p_workflow_id], 'rewind', p_nonce, p_actor, p_reason, ARRAY[status_before], 'ENQUEUED',
                         ARRAY[jsonb_build_object('toStep', p_to_step, 'removedSteps', v_removed)], true);

  SELECT array_agg(s.workflow_id) INTO v_cancelled
    FROM workflow_status s
   WHERE s.parent_id = p_workflow_id AND s.parent_seq >= p_to_step AND s.parent_close = 'cancel';
  PERFORM cancel_tree(v_cancelled, p_workflow_id, 'rewind', p_nonce, p_actor, p_reason, 'cancel', p_child_error);

  SELECT array_agg(c.child_id) INTO v_children FROM unresolved_children(ARRAY[p_workflow_id]) c;
  PERFORM resume_tree(v_children, ARRAY['CANCELLED'], p_workflow_id, 'rewind', p_nonce, p_actor, p_reason);

  result := 'done';
  status_after := 'ENQUEUED';
END
$$;
