-- Lets a workflow run again from where its record ends, with a fresh budget of attempts and a fresh deadline.
--
--   CANCELLED DEAD_LETTER BLOCKED DELAYED SUSPENDED    done: ENQUEUED
--   ENQUEUED PENDING                                   unchanged
--   SUCCESS ERROR                                      refused: its outcome stands; rewind or fork it instead
--
-- A DELAYED or SUSPENDED workflow is woken before its time; what it had recorded to wait for, it goes on waiting for. The
-- children that a cancel took along are resumed with it: see resume_tree.
CREATE OR REPLACE FUNCTION resume_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  IF status_before IN ('ENQUEUED', 'PENDING') THEN
    result := 'unchanged';
    RETURN;
  END IF;
  IF status_before IN ('SUCCESS', 'ERROR') THEN
    result := 'refused';
    refusal := 'status';
    RETURN;
  END IF;
  PERFORM resume_tree(ARRAY[p_workflow_id], ARRAY[status_before], NULL, NULL, p_nonce, p_actor, p_reason);
  result := 'done';
  status_after := 'ENQUEUED';
END
$$;
