-- Makes those of these workflows that have one of the statuses p_from claimable again and, level by level, those of their
-- children that were cancelled, end with their parent and have not given it their outcome: else the parent would be resumed
-- only to find its child cancelled. The part that resume and rewind share. p_root and p_by as in cancel_tree.
--
-- Attempts, deadline, attention and wake-up begin anew; a workflow of a queue gets in line at the place that it had, and its
-- deadline when it is claimed. Everything recorded stays, so completed steps do not run again.
CREATE OR REPLACE FUNCTION resume_tree(
  p_workflow_ids text[], p_from text[], p_root text, p_by text, p_nonce uuid, p_actor text, p_reason text
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_level   text[] := p_workflow_ids;
  v_from    text[] := p_from;
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
         WHERE s.workflow_id = ANY (v_level) AND s.status = ANY (v_from)
         ORDER BY s.workflow_id
           FOR NO KEY UPDATE
      ) l;
    EXIT WHEN v_level IS NULL;

    DELETE FROM workflow_outcome o WHERE o.workflow_id = ANY (v_level);

    UPDATE workflow_status s
       SET status = 'ENQUEUED', owner_token = NULL, record_version = s.record_version + 1, attempts = 0, wake_at = NULL,
           deadline = CASE WHEN s.queue IS NULL THEN v_now + s.timeout_ms * interval '1 ms' END, attention = NULL, attention_detail = NULL,
           updated_at = v_now, completed_at = NULL
     WHERE s.workflow_id = ANY (v_level);

    DELETE FROM workflow_wait w WHERE w.waiter_id = ANY (v_level);
    PERFORM retake_deduplication(v_level);
    PERFORM record_control(v_level, 'resume', p_nonce, p_actor, p_reason, v_before, 'ENQUEUED', v_details, true);

    v_root := coalesce(v_root, v_level[1]);
    v_by := coalesce(v_by, 'resume');
    v_from := ARRAY['CANCELLED'];
    SELECT array_agg(c.child_id) INTO v_level FROM unresolved_children(v_level) c;
  END LOOP;
END
$$;
