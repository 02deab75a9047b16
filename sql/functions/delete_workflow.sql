-- Deletes a workflow: its rows in every table but the audit and the outbox. Its ID is free afterwards, and a workflow that takes it replays
-- nothing of this one. Its children stay, and do not end with that one. A table that gets rows by workflow later on belongs into this function.
--
--   SUCCESS ERROR CANCELLED DEAD_LETTER           done
--   ENQUEUED DELAYED PENDING SUSPENDED BLOCKED    refused 'status'; with p_force done: an execution that runs it is fenced,
--                                                 whoever waits for it learns that it is gone, and its children are
--                                                 cancelled as a cancel would (p_child_error is their outcome)
--   refused 'awaited'                             a workflow that has not ended started this one, or attached to it, and has
--                                                 not recorded its outcome (detail: which one); with p_force done
CREATE OR REPLACE FUNCTION delete_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_force boolean, p_child_error text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_live     boolean;
  v_children text[];
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  v_live := status_before NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER');
  IF v_live AND NOT p_force THEN
    result := 'refused';
    refusal := 'status';
    RETURN;
  END IF;
  SELECT p.workflow_id INTO detail
    FROM step_intent i
    JOIN workflow_status p ON p.workflow_id = i.workflow_id
   WHERE i.child_id = p_workflow_id AND p.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
     AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.child_id = p_workflow_id)
   LIMIT 1;
  IF FOUND AND NOT p_force THEN
    result := 'refused';
    refusal := 'awaited';
    RETURN;
  END IF;

  -- From here on nobody sends to it: see send_items. What has been sent meanwhile is seen by the statements that follow.
  PERFORM FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR UPDATE;
  DELETE FROM message m WHERE m.workflow_id = p_workflow_id;
  DELETE FROM event e WHERE e.workflow_id = p_workflow_id;
  DELETE FROM query_request q WHERE q.workflow_id = p_workflow_id;
  DELETE FROM step_result r WHERE r.workflow_id = p_workflow_id;
  DELETE FROM step_intent i WHERE i.workflow_id = p_workflow_id;
  DELETE FROM transaction_generation g WHERE g.workflow_id = p_workflow_id;
  DELETE FROM stream_entry e WHERE e.workflow_id = p_workflow_id;
  DELETE FROM workflow_outcome o WHERE o.workflow_id = p_workflow_id;
  DELETE FROM workflow_input i WHERE i.workflow_id = p_workflow_id;
  DELETE FROM ended_ownership o WHERE o.workflow_id = p_workflow_id;
  DELETE FROM queue_deduplication d WHERE d.workflow_id = p_workflow_id;
  DELETE FROM queue_debounce d WHERE d.workflow_id = p_workflow_id;
  -- What it has added to the outbox is delivered all the same; a later workflow of this ID has no say in it.
  UPDATE outbox_event o SET seq = NULL WHERE o.workflow_id = p_workflow_id AND o.seq IS NOT NULL;
  DELETE FROM workflow_wait w WHERE w.waiter_id = p_workflow_id;
  DELETE FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
  PERFORM wake_waiters(ARRAY[p_workflow_id]);
  PERFORM record_control(ARRAY[p_workflow_id], 'delete', p_nonce, p_actor, p_reason, ARRAY[status_before], NULL,
                         ARRAY[jsonb_build_object('force', nullif(p_force, false), 'awaitedBy', detail)], false);
  IF v_live THEN
    SELECT array_agg(s.workflow_id) INTO v_children
      FROM workflow_status s WHERE s.parent_id = p_workflow_id AND s.parent_close = 'cancel';
    PERFORM cancel_tree(v_children, p_workflow_id, 'delete', p_nonce, p_actor, p_reason, 'cancel', p_child_error);
  END IF;
  -- What is left of its children ends with nobody, least of all with a later workflow of this ID.
  UPDATE workflow_status s SET parent_close = 'abandon', record_version = s.record_version + 1, updated_at = clock()
   WHERE s.workflow_id = ANY (ARRAY(
           SELECT c.workflow_id FROM workflow_status c
            WHERE c.parent_id = p_workflow_id AND c.parent_close = 'cancel'
            ORDER BY c.workflow_id FOR NO KEY UPDATE));
  result := 'done';
  status_after := NULL;
END
$$;
