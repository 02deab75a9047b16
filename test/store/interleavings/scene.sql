-- What interleavings begin with, made in one call: a workflow and those around it. "@" stands for the schema. UUIDs come from the
-- scene and a name, so that two scenes can be compared; see scenes.ts.
CREATE FUNCTION @scene_uuid(p_id text, p_name text) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN md5(p_id || '|' || p_name)::uuid;

-- Removes a scene from all tables, with whatever operations have made of it: every ID begins with the scene's.
CREATE FUNCTION @clear_scene(p_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM @workflow_status WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @workflow_input WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @workflow_outcome WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @step_result WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @step_intent WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @stream_entry WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @ended_ownership WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @admin_audit a WHERE a.workflow_id LIKE p_id || '%'
     OR a.workflow_id IN (SELECT o.event_id::text FROM @outbox_event o WHERE o.event_key LIKE p_id || '%');
  DELETE FROM @message WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @event WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @query_request WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @workflow_wait WHERE waiter_id LIKE p_id || '%';
  DELETE FROM @wakeup WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @outbox_event WHERE event_key LIKE p_id || '%';
  DELETE FROM @transaction_generation WHERE workflow_id LIKE p_id || '%';
  DELETE FROM @queue_deduplication WHERE queue LIKE p_id || '%';
  DELETE FROM @queue_debounce WHERE queue LIKE p_id || '%';
  DELETE FROM @queue WHERE name LIKE p_id || '%';
  DELETE FROM @executor WHERE executor_id LIKE p_id || '%';
END
$$;

-- The workflow p_id, of the kind p_kind, in its second epoch or third, with a step, a child, a message that waits, an event, a stream,
-- an event in the outbox, and a step that has begun; in a queue with a limit. Beside it: the child, which runs; a receiver, which
-- runs; a waiter, suspended until the workflow has an outcome. The lease of who runs all this is over. Returns the record version.
CREATE FUNCTION @set_scene(p_id text, p_kind text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_owner CONSTANT text := p_id || ' owner';
  v_queue CONSTANT text := p_id || ' queue';
  v_token CONSTANT uuid := @scene_uuid(p_id, 'owner');
BEGIN
  PERFORM @define_queues(jsonb_build_array(jsonb_build_object('name', v_queue, 'concurrency', 5)), false);
  PERFORM @register_executor(v_owner, 'v1', 3600000, 'host', 1);
  PERFORM @register_executor(p_id || ' claimer', 'v1', 3600000, 'host', 1);
  PERFORM @start_batch(
    v_owner, 1, 'v1', ARRAY[p_id, p_id || ' receiver', p_id || ' waiter'],
    ARRAY[@scene_uuid(p_id, 'stale'), @scene_uuid(p_id, 'receiver token'), @scene_uuid(p_id, 'waiter token')],
    ARRAY[@scene_uuid(p_id, 'first start'), @scene_uuid(p_id, 'receiver start'), @scene_uuid(p_id, 'waiter start')],
    ARRAY['flow', 'other', 'other'], NULL, ARRAY['"input"', '"input"', '"input"'], ARRAY[100, 100, 100], NULL, NULL);
  PERFORM @suspend_workflow(p_id || ' waiter', @scene_uuid(p_id, 'waiter token'), 1, @scene_uuid(p_id, 'waiter suspended'),
    jsonb_build_array(jsonb_build_object('kind', 'outcome', 'workflowId', p_id)));
  PERFORM @checkpoint_one(p_id, @scene_uuid(p_id, 'stale'), 1, @scene_uuid(p_id, 'zero'), 0, 'work', 'step', '"zero"', NULL, 1, NULL, NULL, 0);
  PERFORM @release_workflow(p_id, @scene_uuid(p_id, 'stale'), 2, @scene_uuid(p_id, 'first release'), 'ENQUEUED', NULL, false, NULL, NULL);
  -- The claim is written by hand, since one makes a token of its own.
  UPDATE @workflow_status
     SET status = 'PENDING', owner_token = v_token, epoch = 2, record_version = 4, attempts = 2, executor_id = v_owner,
         incarnation = 1, wake_at = NULL, owned_at = @clock(), owned_reason = 'claimed',
         queue = CASE WHEN p_kind IN ('owned, in a queue', 'enqueued') THEN v_queue END,
         queued_at = CASE WHEN p_kind IN ('owned, in a queue', 'enqueued') THEN @clock() END
   WHERE workflow_id = p_id;
  PERFORM @checkpoint_one(p_id, v_token, 4, @scene_uuid(p_id, 'one'), 1, 'work', 'step', '"one"', NULL, 1, NULL, NULL, 0);
  PERFORM @record_intent(p_id, v_token, 5, @scene_uuid(p_id, 'child'), 2, 'child', 'workflow', NULL, NULL, p_id || ' child', 'flow', NULL,
    @scene_uuid(p_id, 'child token'), '"input"', 'cancel', 100, NULL, NULL);
  PERFORM @record_event(p_id, v_token, 6, @scene_uuid(p_id, 'event'), 3, 'key', '"value"', '"set"', 0);
  PERFORM @stream_batch(ARRAY[p_id], ARRAY[v_token], ARRAY[7], ARRAY[1], ARRAY[@scene_uuid(p_id, 'stream')], ARRAY[4], ARRAY['stream'],
    ARRAY['s'], ARRAY['"first"'], ARRAY['"written"'], ARRAY[1], ARRAY[NULL::integer], ARRAY[0]);
  PERFORM @record_with_events(p_id, v_token, 8, @scene_uuid(p_id, 'outbox'), 5, 'add', 'outbox', '"added"', 1, NULL, 0,
    json_build_array(json_build_object('topic', p_id || ' topic', 'key', p_id || ' lane', 'payload', '1'))::text);
  PERFORM @record_intent(p_id, v_token, 9, @scene_uuid(p_id, 'begun'), 6, 'charge', 'step', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL);
  PERFORM @send_message(p_id, 'topic', '"hello"', 'message one');
  IF p_kind <> 'owned' THEN
    PERFORM @ask_query(p_id, @scene_uuid(p_id, 'question'), 'state', '[]', 3600000);
  END IF;
  -- What was sent and asked has been looked at.
  DELETE FROM @wakeup WHERE workflow_id LIKE p_id || '%';

  CASE p_kind
    WHEN 'owned', 'owned, in a queue' THEN NULL;
    WHEN 'blocked' THEN
      PERFORM @release_workflow(p_id, v_token, 10, @scene_uuid(p_id, 'second release'), 'BLOCKED', NULL, false, 'OUTCOME_UNKNOWN', 'charge');
    WHEN 'enqueued' THEN
      PERFORM @release_workflow(p_id, v_token, 10, @scene_uuid(p_id, 'second release'), 'ENQUEUED', NULL, true, NULL, NULL);
    WHEN 'suspended', 'woken', 'due' THEN
      PERFORM @answer_query(p_id, @scene_uuid(p_id, 'question'), '"well"', NULL);
      PERFORM @suspend_workflow(p_id, v_token, 10, @scene_uuid(p_id, 'second release'),
        jsonb_build_array(jsonb_build_object('kind', 'message', 'topic', 'other'), jsonb_build_object('kind', 'outcome', 'workflowId', p_id || ' child')));
    WHEN 'ended' THEN
      PERFORM @complete_batch(ARRAY[p_id], ARRAY[v_token], ARRAY[10], ARRAY[@scene_uuid(p_id, 'end')], ARRAY['SUCCESS'], ARRAY['"result"'],
        NULL, ARRAY[NULL]);
    WHEN 'cancelled' THEN
      PERFORM @cancel_workflow(p_id, @scene_uuid(p_id, 'end'), 'somebody', NULL, 'cancel', '"cancelled"');
    WHEN 'rolling back' THEN
      PERFORM @begin_rollback(p_id, v_token, 10, @scene_uuid(p_id, 'end'), 7, 'failed', '"failed"');
      UPDATE @workflow_status
         SET status = 'PENDING', owner_token = @scene_uuid(p_id, 'roller'), epoch = 3, record_version = 12, attempts = 1,
             executor_id = v_owner, incarnation = 1, owned_at = @clock(), owned_reason = 'claimed'
       WHERE workflow_id = p_id;
      PERFORM @plan_rollback(p_id, @scene_uuid(p_id, 'roller'), 12, @scene_uuid(p_id, 'plan'), '[{"seq": 8, "name": "undo", "undoes": 0}]');
    WHEN 'rollback failed' THEN
      PERFORM @begin_rollback(p_id, v_token, 10, @scene_uuid(p_id, 'end'), 7, 'failed', '"failed"');
      UPDATE @workflow_status
         SET status = 'PENDING', owner_token = @scene_uuid(p_id, 'roller'), epoch = 3, record_version = 12, attempts = 1,
             executor_id = v_owner, incarnation = 1, owned_at = @clock(), owned_reason = 'claimed'
       WHERE workflow_id = p_id;
      PERFORM @plan_rollback(p_id, @scene_uuid(p_id, 'roller'), 12, @scene_uuid(p_id, 'plan'), '[{"seq": 8, "name": "undo", "undoes": 0}]');
      PERFORM @fail_compensation(p_id, @scene_uuid(p_id, 'roller'), 13, @scene_uuid(p_id, 'stop'), 8, '"no"', 'it failed');
  END CASE;
  DELETE FROM @wakeup WHERE workflow_id LIKE p_id || '%' AND p_kind NOT IN ('ended', 'cancelled');
  IF p_kind = 'woken' THEN
    PERFORM @send_message(p_id, 'other', '"wake up"', 'message four');
  ELSIF p_kind = 'due' THEN
    UPDATE @workflow_status SET wake_at = @clock() - interval '1 s' WHERE workflow_id = p_id;
  END IF;
  UPDATE @executor SET lease_until = @clock() - interval '1 s' WHERE executor_id = v_owner;
  RETURN (SELECT record_version FROM @workflow_status WHERE workflow_id = p_id);
END
$$;

-- All that is on record of a scene, as one text. What differs from scene to scene without meaning is left out: places are told by order.
CREATE FUNCTION @observe_scene(p_id text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object(
    'violations', (SELECT jsonb_agg(v.violation) FROM (
-- violations
    ) v WHERE strpos(v.violation, p_id) > 0),
    'workflow_status', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id) FROM @workflow_status t WHERE t.workflow_id LIKE p_id || '%'),
    'workflow_input', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id) FROM @workflow_input t WHERE t.workflow_id LIKE p_id || '%'),
    'workflow_outcome', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id) FROM @workflow_outcome t WHERE t.workflow_id LIKE p_id || '%'),
    'step_result', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.seq) FROM @step_result t WHERE t.workflow_id LIKE p_id || '%'),
    'step_intent', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.seq) FROM @step_intent t WHERE t.workflow_id LIKE p_id || '%'),
    'stream_entry', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.stream, t.entry_offset) FROM @stream_entry t WHERE t.workflow_id LIKE p_id || '%'),
    'ended_ownership', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.epoch) FROM @ended_ownership t WHERE t.workflow_id LIKE p_id || '%'),
    'admin_audit', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.verb, t.audit_id) FROM @admin_audit t
                     WHERE t.workflow_id LIKE p_id || '%' OR t.workflow_id = @outbox_event_id(@scene_uuid(p_id, 'first start'), 5, 0)::text),
    'message', (SELECT jsonb_agg(to_jsonb(t) - 'position' ORDER BY t.workflow_id, t.position) FROM @message t WHERE t.workflow_id LIKE p_id || '%'),
    'event', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.key, t.record_version) FROM @event t WHERE t.workflow_id LIKE p_id || '%'),
    'query_request', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.workflow_id, t.name) FROM @query_request t WHERE t.workflow_id LIKE p_id || '%'),
    'workflow_wait', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.waiter_id, t.target_id) FROM @workflow_wait t WHERE t.waiter_id LIKE p_id || '%'),
    -- Two wake-ups are as good as one.
    'wakeup', (SELECT jsonb_agg(DISTINCT t.workflow_id) FROM @wakeup t WHERE t.workflow_id LIKE p_id || '%'),
    'outbox_event', (SELECT jsonb_agg(to_jsonb(t) - 'position' ORDER BY t.topic, t.position) FROM @outbox_event t WHERE t.event_key LIKE p_id || '%'),
    'transaction_generation', (SELECT jsonb_agg(to_jsonb(t) - 'generation' ORDER BY t.generation) FROM @transaction_generation t WHERE t.workflow_id LIKE p_id || '%'),
    'queue_deduplication', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.deduplication_id) FROM @queue_deduplication t WHERE t.queue LIKE p_id || '%'),
    'queue_debounce', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.debounce_key) FROM @queue_debounce t WHERE t.queue LIKE p_id || '%'),
    'queue', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.name) FROM @queue t WHERE t.name LIKE p_id || '%'),
    'executor', (SELECT jsonb_agg(to_jsonb(t) || jsonb_build_object('live', t.lease_until > @clock()) ORDER BY t.executor_id, t.incarnation) FROM @executor t WHERE t.executor_id LIKE p_id || '%')
  )::text
$$;
