-- Moves a workflow to another app version, whose executors go on with it.
--
--   ENQUEUED DELAYED SUSPENDED BLOCKED    done: the status stays
--   PENDING                               done: ENQUEUED; its execution is fenced
--   SUCCESS ERROR CANCELLED DEAD_LETTER   refused 'status'
--
-- unchanged when it has that version already, and when an executor of any version may claim it, since it has no record.
CREATE OR REPLACE FUNCTION set_app_version(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_app_version text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
DECLARE
  v_now  timestamptz := clock();
  v_from text;
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
  SELECT s.app_version INTO v_from
    FROM workflow_status s
   WHERE s.workflow_id = p_workflow_id AND NOT s.any_version AND (s.epoch > 0 OR s.forked_from IS NOT NULL);
  IF NOT FOUND OR v_from = p_app_version THEN
    result := 'unchanged';
    RETURN;
  END IF;
  status_after := CASE status_before WHEN 'PENDING' THEN 'ENQUEUED' ELSE status_before END;
  UPDATE workflow_status s
     SET status = status_after, owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
         app_version = p_app_version,
         -- Taking it away from an execution is not an attempt of it.
         attempts = CASE s.status WHEN 'PENDING' THEN greatest(s.attempts - 1, 0) ELSE s.attempts END
   WHERE s.workflow_id = p_workflow_id;
  PERFORM record_control(ARRAY[p_workflow_id], 'setAppVersion', p_nonce, p_actor, p_reason, ARRAY[status_before], status_after,
                         ARRAY[jsonb_build_object('from', v_from, 'to', p_app_version)], true);
  result := 'done';
END
$$;
