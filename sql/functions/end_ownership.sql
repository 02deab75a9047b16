-- Ends the ownerships that are under way of workflows whose rows the caller has locked: each moves from the workflow's row to a
-- row of its own. Not for an execution that records its outcome: that ownership stays where it is, see workflow_ownership.
--
-- p_nonce: of the write that gave the ownership up, by which a call whose reply was lost knows it again. p_ended_at: null: now.
CREATE OR REPLACE FUNCTION end_ownership(
  p_workflow_ids text[], p_ended_how text, p_nonce uuid, p_ended_at timestamptz DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO ended_ownership (workflow_id, epoch, executor_id, incarnation, reason, owned_at, ended_at, ended_how, nonce)
  SELECT s.workflow_id, s.epoch, s.executor_id, s.incarnation, s.owned_reason, s.owned_at, coalesce(p_ended_at, clock()),
         p_ended_how, p_nonce
    FROM workflow_status s
   WHERE s.workflow_id = ANY (p_workflow_ids) AND s.owned_at IS NOT NULL;
  UPDATE workflow_status s SET owned_at = NULL, owned_reason = NULL
   WHERE s.workflow_id = ANY (p_workflow_ids) AND s.owned_at IS NOT NULL;
END
$$;
