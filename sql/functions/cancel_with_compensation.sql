-- Cancels a workflow and has it rolled back first: it becomes claimable, and the execution that claims it runs the compensations of
-- what was done and ends it as CANCELLED, with p_error as its outcome. An execution that runs it is fenced by its next write, and told.
--
--   ENQUEUED DELAYED, nothing recorded, never owned    done: CANCELLED, as by cancel_workflow
--   ENQUEUED DELAYED PENDING SUSPENDED BLOCKED         done: ENQUEUED, with the marker of a rollback (see begin_rollback)
--   … with a marker: it is being rolled back           unchanged
--   SUCCESS ERROR CANCELLED DEAD_LETTER                unchanged
--
-- Children that are to end with their parent are treated the same, with theirs, unless p_children is 'keep'. Their rollbacks and
-- that of their parent do not wait for each other. The shape is that of cancel_tree, which see for the locking.
CREATE OR REPLACE FUNCTION cancel_with_compensation(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_children text, p_error text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  c_live     CONSTANT text[] := ARRAY['ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED'];
  v_now      timestamptz := clock();
  v_level    text[] := ARRAY[p_workflow_id];
  v_fresh    text[];
  v_root     text;
  v_before   text[];
  v_details  jsonb[];
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  IF status_before <> ALL (c_live)
     OR EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.kind = 'rollback') THEN
    result := 'unchanged';
    RETURN;
  END IF;

  LOOP
    PERFORM FROM workflow_status s
      WHERE s.workflow_id = ANY (v_level) AND s.status = ANY (c_live)
      ORDER BY s.workflow_id
        FOR NO KEY UPDATE;
    -- Nothing was ever done in these.
    SELECT array_agg(s.workflow_id) INTO v_fresh
      FROM workflow_status s
     WHERE s.workflow_id = ANY (v_level) AND s.status = ANY (c_live) AND s.epoch = 0 AND recorded_steps(s.workflow_id) = 0;
    PERFORM cancel_tree(v_fresh, v_root, CASE WHEN v_root IS NOT NULL THEN 'cancel' END, p_nonce, p_actor, p_reason, 'keep', p_error);

    SELECT array_agg(s.workflow_id), array_agg(s.status),
           array_agg(jsonb_build_object('compensate', true, 'cascadedFrom', v_root,
                                        'cascadedBy', CASE WHEN v_root IS NOT NULL THEN 'cancel' END, 'attention', s.attention))
      INTO v_level, v_before, v_details
      FROM workflow_status s
     WHERE s.workflow_id = ANY (v_level) AND s.status = ANY (c_live)
       AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = s.workflow_id AND r.kind = 'rollback');
    EXIT WHEN v_level IS NULL;

    INSERT INTO step_result (workflow_id, seq, name, kind, error, attempts, record_version, epoch, nonce, started_at, completed_at)
    SELECT s.workflow_id, recorded_steps(s.workflow_id), 'cancelled', 'rollback', p_error, 1, s.record_version + 1, 0, p_nonce,
           v_now, v_now
      FROM workflow_status s WHERE s.workflow_id = ANY (v_level);
    UPDATE workflow_status s
       SET status = 'ENQUEUED', owner_token = NULL, record_version = s.record_version + 1, attempts = 0, wake_at = NULL,
           attention = NULL, attention_detail = NULL, updated_at = v_now
     WHERE s.workflow_id = ANY (v_level);
    DELETE FROM workflow_wait w WHERE w.waiter_id = ANY (v_level);
    PERFORM record_control(v_level, 'cancel', p_nonce, p_actor, p_reason, v_before, 'ENQUEUED', v_details, true);
    EXIT WHEN p_children = 'keep';

    v_root := p_workflow_id;
    SELECT array_agg(s.workflow_id) INTO v_level
      FROM workflow_status s
     WHERE s.parent_id = ANY (v_level) AND s.parent_close = 'cancel' AND s.status = ANY (c_live);
    EXIT WHEN v_level IS NULL;
  END LOOP;
  result := 'done';
  SELECT s.status INTO status_after FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
END
$$;
