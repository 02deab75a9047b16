-- Cancels a workflow, whatever it is doing: an execution that runs it is fenced by its next write, and told at once.
--
--   ENQUEUED DELAYED PENDING SUSPENDED BLOCKED    done: CANCELLED, with p_error as the outcome
--   SUCCESS ERROR CANCELLED DEAD_LETTER           unchanged
--
-- Children that are to end with their parent are cancelled too, with theirs, each with an audit row of its own; p_children
-- 'keep' leaves them running. A parent that waits for this workflow gets p_error from it, as from any failed child.
CREATE OR REPLACE FUNCTION cancel_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_children text, p_error text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  IF status_before IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER') THEN
    result := 'unchanged';
    RETURN;
  END IF;
  PERFORM cancel_tree(ARRAY[p_workflow_id], NULL, NULL, p_nonce, p_actor, p_reason, p_children, p_error);
  result := 'done';
  status_after := 'CANCELLED';
END
$$;
