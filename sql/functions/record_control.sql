-- The last statement of every control operation, in its transaction: ends whatever ownership is still open, writes one audit
-- row for each workflow that was changed, and tells executors and waiters. The audit row's ID is the call's nonce, for the
-- rows that the verb cascaded to as well: that is how a retry knows its own commit, and how an operator sees what one call did.
--
-- p_wakes: there may be something to claim.
CREATE OR REPLACE FUNCTION record_control(
  p_workflow_ids text[], p_verb text, p_nonce uuid, p_actor text, p_reason text,
  p_statuses_before text[], p_status_after text, p_details jsonb[], p_wakes boolean
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  PERFORM end_ownership(p_workflow_ids, p_verb, p_nonce);

  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, status_before, status_after, detail, acted_at)
  SELECT p_nonce, r.workflow_id, p_verb, p_actor, p_reason, r.status_before, p_status_after,
         nullif(jsonb_strip_nulls(r.detail), '{}'), v_now
    FROM unnest(p_workflow_ids, p_statuses_before, p_details) AS r (workflow_id, status_before, detail);

  PERFORM pg_notify(current_schema() || '.control', r.workflow_id) FROM unnest(p_workflow_ids) AS r (workflow_id);
  IF p_wakes THEN
    PERFORM pg_notify(current_schema() || '.work', '');
  ELSE
    -- Outcomes, or workflows that are gone: whoever waits for them looks.
    PERFORM pg_notify(current_schema() || '.outcome', json_build_array(r.workflow_id)::text)
      FROM unnest(p_workflow_ids) AS r (workflow_id);
  END IF;
END
$$;
