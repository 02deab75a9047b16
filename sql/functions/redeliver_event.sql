-- Has a dead event delivered again, with a fresh budget of attempts.
--
--   done       it is due
--   unchanged  it is not dead, and nothing was written
--   missing    there is no such event: it was delivered or discarded, or never was
--
-- The audit row's ID is the call's nonce, by which a retry knows its own commit; it is kept under the event's ID.
CREATE OR REPLACE FUNCTION redeliver_event(p_event_id uuid, p_nonce uuid, p_actor text, p_reason text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_event outbox_event%ROWTYPE;
BEGIN
  SELECT * INTO v_event FROM outbox_event o WHERE o.event_id = p_event_id FOR NO KEY UPDATE;
  PERFORM FROM admin_audit a WHERE a.workflow_id = p_event_id::text AND a.audit_id = p_nonce;
  IF FOUND THEN
    RETURN 'done';
  ELSIF v_event.event_id IS NULL THEN
    RETURN 'missing';
  ELSIF v_event.state <> 'dead' THEN
    RETURN 'unchanged';
  END IF;
  UPDATE outbox_event o
     SET state = 'ready', attempts = 0, due_at = v_now, died_at = NULL, reason = NULL
   WHERE o.event_id = p_event_id;
  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, detail, acted_at)
  VALUES (p_nonce, p_event_id::text, 'outbox.redeliver', p_actor, p_reason,
          jsonb_strip_nulls(jsonb_build_object('topic', v_event.topic, 'key', v_event.event_key,
                                               'workflowId', v_event.workflow_id, 'attempts', v_event.attempts)), v_now);
  PERFORM pg_notify(current_schema() || '.outbox', '');
  RETURN 'done';
END
$$;
