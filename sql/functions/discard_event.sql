-- Gives an event up, dead or not, and lets the next of its lane be delivered. Answers as redeliver_event, but never 'unchanged'. One
-- that is just being delivered may have arrived all the same.
CREATE OR REPLACE FUNCTION discard_event(p_event_id uuid, p_nonce uuid, p_actor text, p_reason text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s' SET enable_seqscan = off
AS $$
DECLARE
  c_events CONSTANT integer := 100;
  v_event  outbox_event%ROWTYPE;
BEGIN
  -- The lane first, as everybody does.
  PERFORM pg_advisory_xact_lock_shared(all_lanes_lock());
  PERFORM pg_advisory_xact_lock(lane_lock(o.topic, o.event_key))
     FROM outbox_event o WHERE o.event_id = p_event_id AND o.event_key IS NOT NULL;
  SELECT * INTO v_event FROM outbox_event o WHERE o.event_id = p_event_id FOR UPDATE;
  -- First of all: a rewind may have had the event added again since.
  PERFORM FROM admin_audit a WHERE a.workflow_id = p_event_id::text AND a.audit_id = p_nonce;
  IF FOUND THEN
    RETURN 'done';
  ELSIF v_event.event_id IS NULL THEN
    RETURN 'missing';
  END IF;
  DELETE FROM outbox_event o WHERE o.event_id = p_event_id;
  IF v_event.event_key IS NOT NULL THEN
    PERFORM advance_lane(v_event.topic, v_event.event_key, c_events);
  END IF;
  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, detail, acted_at)
  VALUES (p_nonce, p_event_id::text, 'outbox.discard', p_actor, p_reason,
          jsonb_strip_nulls(jsonb_build_object('topic', v_event.topic, 'key', v_event.event_key,
                                               'workflowId', v_event.workflow_id, 'attempts', v_event.attempts)), clock());
  PERFORM pg_notify(current_schema() || '.outbox', '');
  RETURN 'done';
END
$$;
