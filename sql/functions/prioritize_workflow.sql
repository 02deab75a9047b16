-- Changes a workflow's priority in its queue. Does not take ownership: an execution that runs it meets another version at its
-- next write, and goes on with that.
--
--   ENQUEUED DELAYED PENDING SUSPENDED BLOCKED    done; unchanged when it has that priority already
--   SUCCESS ERROR CANCELLED DEAD_LETTER           refused 'status'
CREATE OR REPLACE FUNCTION prioritize_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_priority integer,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '5s' SET enable_seqscan = off
AS $$
DECLARE
  v_now    timestamptz := clock();
  v_before integer;
BEGIN
  SELECT b.* INTO result, status_before, status_after FROM begin_control(p_workflow_id, p_nonce) b;
  IF result IS NOT NULL THEN
    RETURN;
  END IF;
  IF status_before IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER') THEN
    result := 'refused';
    refusal := 'status';
    RETURN;
  END IF;
  SELECT s.priority INTO v_before FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
  IF v_before = p_priority THEN
    result := 'unchanged';
    RETURN;
  END IF;
  UPDATE workflow_status s SET priority = p_priority, record_version = s.record_version + 1, updated_at = v_now
   WHERE s.workflow_id = p_workflow_id;
  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, status_before, status_after, detail, acted_at)
  VALUES (p_nonce, p_workflow_id, 'prioritize', p_actor, p_reason, status_before, status_before,
          jsonb_build_object('from', v_before, 'to', p_priority), v_now);
  result := 'done';
END
$$;
