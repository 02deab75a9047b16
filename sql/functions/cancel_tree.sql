-- Cancels those of these workflows that are not terminal and, level by level, their children that are to end with their
-- parent. The part that cancel, rewind and delete share; the caller holds the lock of whatever the workflows hang on.
--
-- p_root and p_by name the workflow and the verb that this cascades from; null: these were asked for themselves, and only
-- what lies below them is a cascade. p_children is 'cancel', or 'keep' to stop at the first level.
--
-- A workflow of which it is unknown what became of a step stays listed for attention: the effect may be there.
--
-- Why it has this shape:
-- * A row is locked by a statement of its own, with the status predicate. A claim that commits while that statement waits
--   has written an ownership row which only a later statement sees.
-- * A child cannot appear unseen: a parent's child is recorded under the parent's row lock, which is held here by then.
-- * Rows of one level are locked in one order. A row that came by twice (an ID can be used again, and so become its own
--   ancestor) is terminal the second time.
CREATE OR REPLACE FUNCTION cancel_tree(
  p_workflow_ids text[], p_root text, p_by text, p_nonce uuid, p_actor text, p_reason text, p_children text, p_error text
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  c_live    CONSTANT text[] := ARRAY['ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED'];
  v_now     timestamptz := clock();
  v_level   text[] := p_workflow_ids;
  v_root    text := p_root;
  v_by      text := p_by;
  v_before  text[];
  v_details jsonb[];
BEGIN
  LOOP
    SELECT array_agg(l.workflow_id), array_agg(l.status),
           array_agg(jsonb_build_object('cascadedFrom', v_root, 'cascadedBy', v_by, 'attention', l.attention))
      INTO v_level, v_before, v_details
      FROM (
        SELECT s.workflow_id, s.status, s.attention
          FROM workflow_status s
         WHERE s.workflow_id = ANY (v_level) AND s.status = ANY (c_live)
         ORDER BY s.workflow_id
           FOR NO KEY UPDATE
      ) l;
    EXIT WHEN v_level IS NULL;

    INSERT INTO workflow_outcome (workflow_id, status, error, epoch, nonce, recorded_at)
    SELECT s.workflow_id, 'CANCELLED', p_error, s.epoch, p_nonce, v_now
      FROM workflow_status s WHERE s.workflow_id = ANY (v_level);

    UPDATE workflow_status s
       SET status = 'CANCELLED', owner_token = NULL, record_version = s.record_version + 1, wake_at = NULL,
           (attention, attention_detail) = (
             SELECT CASE WHEN u.detail IS NOT NULL THEN 'OUTCOME_UNKNOWN' END, u.detail
               FROM unknown_outcomes(s.workflow_id) AS u (detail)),
           updated_at = v_now, completed_at = v_now
     WHERE s.workflow_id = ANY (v_level);
    DELETE FROM workflow_wait w WHERE w.waiter_id = ANY (v_level);
    PERFORM wake_waiters(v_level);

    PERFORM record_control(v_level, 'cancel', p_nonce, p_actor, p_reason, v_before, 'CANCELLED', v_details, false);
    EXIT WHEN p_children = 'keep';

    v_root := coalesce(v_root, v_level[1]);
    v_by := coalesce(v_by, 'cancel');
    SELECT array_agg(s.workflow_id) INTO v_level
      FROM workflow_status s
     WHERE s.parent_id = ANY (v_level) AND s.parent_close = 'cancel' AND s.status = ANY (c_live);
  END LOOP;
END
$$;
