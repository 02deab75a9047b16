-- Makes a new workflow that has the source's input and its record up to, and without, step p_from_step, and goes on from
-- there. The source, whatever its status, is not written to.
--
--   any status        done: the new workflow is ENQUEUED; the statuses answered are the source's
--   refused 'step'    p_from_step is beyond the end of the source's record (or the beginning of its rollback), or before the
--                     beginning of its run; detail is the highest number allowed, with the lowest in front of it where that is not 0
--   refused 'exists'  the new ID is taken, and not by this call
--
-- The copied rows get the record versions 1 to k in the source's order, so that they are replayed in it, and epoch 0: no
-- execution of the new workflow wrote them. A child that the source is waiting for is shared: the fork waits for the same
-- one. The fork itself has no parent; it waits at the end of the same queue, if
-- there is one, and holds no deduplication ID. p_app_version null means the source's.
--
-- Events have the values that they had before the step, also those that earlier runs have set. Messages are not copied, but for the
-- updates that the source had received before the step: those that it had received are in its record, and those that wait were sent to the
-- source.
-- Streams come along as far as earlier runs and the copied results have written them, each counted from offset 0.
--
-- Every writer of a workflow's record holds its status row for update, so sharing that row's lock keeps the copy whole. An
-- execution that meets it is answered 'locked' and tries again. One snapshot in one statement would need no lock, but a
-- statement that reads one workflow and writes three tables of another cannot be routed.
CREATE OR REPLACE FUNCTION fork_workflow(
  p_workflow_id text, p_nonce uuid, p_actor text, p_reason text, p_from_step integer, p_new_id text, p_app_version text,
  OUT result text, OUT refusal text, OUT status_before text, OUT status_after text, OUT detail text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '1s'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now    timestamptz := clock();
  v_source workflow_status%ROWTYPE;
  v_steps  integer;
  v_copied bigint;
BEGIN
  SELECT * INTO v_source FROM workflow_status s WHERE s.workflow_id = p_workflow_id FOR SHARE;
  status_before := v_source.status;
  status_after := v_source.status;
  PERFORM FROM admin_audit a WHERE a.workflow_id = p_workflow_id AND a.audit_id = p_nonce;
  IF FOUND THEN
    result := 'done';
    RETURN;
  END IF;
  IF v_source.workflow_id IS NULL THEN
    result := 'missing';
    RETURN;
  END IF;
  -- A rollback is not copied: what it undoes must not be undone once more.
  v_steps := coalesce(
    (SELECT r.seq FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.kind = 'rollback'),
    recorded_steps(p_workflow_id));
  IF p_from_step NOT BETWEEN v_source.first_seq AND v_steps THEN
    result := 'refused';
    refusal := 'step';
    detail := concat_ws(' ', nullif(v_source.first_seq, 0), v_steps);
    RETURN;
  END IF;

  SELECT count(*) INTO v_copied FROM record_before(p_workflow_id, p_from_step);
  INSERT INTO workflow_status (workflow_id, name, instance, status, record_version, max_attempts, app_version, timeout_ms,
                               deadline, attributes, forked_from, queue, priority, partition_key, queued_at, first_seq,
                               schedule, scheduled_at, schedule_cause, created_at, updated_at)
  VALUES (p_new_id, v_source.name, v_source.instance, 'ENQUEUED', v_copied + 1, v_source.max_attempts,
          coalesce(p_app_version, v_source.app_version), v_source.timeout_ms,
          CASE WHEN v_source.queue IS NULL THEN v_now + v_source.timeout_ms * interval '1 ms' END, v_source.attributes,
          p_workflow_id, v_source.queue, v_source.priority, v_source.partition_key, v_now, v_source.first_seq,
          v_source.schedule, v_source.scheduled_at, CASE WHEN v_source.schedule IS NOT NULL THEN 'fork' END, v_now, v_now)
  ON CONFLICT (workflow_id) DO NOTHING;
  IF NOT FOUND THEN
    -- The insert has waited for whoever was making that ID: a first try of this call, possibly.
    PERFORM FROM admin_audit a WHERE a.workflow_id = p_workflow_id AND a.audit_id = p_nonce;
    IF FOUND THEN
      result := 'done';
    ELSE
      result := 'refused';
      refusal := 'exists';
    END IF;
    RETURN;
  END IF;

  INSERT INTO workflow_input (workflow_id, input, nonce, created_at)
  SELECT p_new_id, i.input, p_nonce, v_now FROM workflow_input i WHERE i.workflow_id = p_workflow_id;
  INSERT INTO step_result (workflow_id, seq, name, kind, output, error, attempts, attempt_errors, child_id,
                           record_version, epoch, nonce, started_at, completed_at)
  SELECT p_new_id, r.seq, r.name, r.kind, r.output, r.error, r.attempts, r.attempt_errors, r.child_id,
         b.place, 0, r.nonce, r.started_at, r.completed_at
    FROM record_before(p_workflow_id, p_from_step) b
    JOIN step_result r ON r.workflow_id = p_workflow_id AND r.seq = b.seq
   WHERE b.complete;
  INSERT INTO step_intent (workflow_id, seq, name, kind, child_id, wake_at, record_version, epoch, nonce, recorded_at)
  SELECT p_new_id, i.seq, i.name, i.kind, i.child_id, i.wake_at, b.place, 0, i.nonce, i.recorded_at
    FROM record_before(p_workflow_id, p_from_step) b
    JOIN step_intent i ON i.workflow_id = p_workflow_id AND i.seq = b.seq
   -- A step of which nobody knows what became of it is the source's: the fork runs it itself, under a key of its own.
   WHERE NOT b.complete AND i.kind <> 'step';
  INSERT INTO stream_entry (workflow_id, stream, entry_offset, value, seq, attempt, once_place, epoch, nonce, written_at)
  SELECT p_new_id, e.stream, row_number() OVER (PARTITION BY e.stream ORDER BY e.entry_offset) - 1, e.value, e.seq, e.attempt,
         e.once_place, 0, e.nonce, e.written_at
    FROM stream_entry e
   WHERE e.workflow_id = p_workflow_id AND e.seq < p_from_step
     AND (e.seq < v_source.first_seq
          OR EXISTS (SELECT FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = e.seq));

  INSERT INTO event (workflow_id, key, value, seq, record_version, set_at)
  SELECT p_new_id, e.key, e.value, e.seq, b.place, e.set_at
    FROM record_before(p_workflow_id, p_from_step) b
    JOIN event e ON e.workflow_id = p_workflow_id AND e.seq = b.seq
   WHERE b.complete;
  -- What earlier runs have set last is of no record any more: before everything that is.
  INSERT INTO event (workflow_id, key, value, seq, record_version, set_at)
  SELECT DISTINCT ON (e.key) p_new_id, e.key, e.value, e.seq, 0, e.set_at
    FROM event e
   WHERE e.workflow_id = p_workflow_id AND e.seq < v_source.first_seq
   ORDER BY e.key, e.record_version DESC;

  -- Asked for again under the same ID, an update that is on record is not carried out a second time.
  INSERT INTO message (workflow_id, message_id, topic, payload, sender, consumed_seq, sent_at)
  SELECT p_new_id, m.message_id, m.topic, m.payload, m.sender, m.consumed_seq, m.sent_at
    FROM message m
   WHERE m.workflow_id = p_workflow_id AND m.consumed_seq < p_from_step AND starts_with(m.topic, 'holdfast:update:')
   ORDER BY m.position;

  INSERT INTO admin_audit (audit_id, workflow_id, verb, actor, reason, status_before, status_after, detail, acted_at)
  VALUES (p_nonce, p_workflow_id, 'fork', p_actor, p_reason, v_source.status, v_source.status,
          jsonb_build_object('fromStep', p_from_step, 'to', p_new_id), v_now),
         (p_nonce, p_new_id, 'fork', p_actor, p_reason, NULL, 'ENQUEUED',
          jsonb_build_object('fromStep', p_from_step, 'from', p_workflow_id), v_now);
  PERFORM pg_notify(current_schema() || '.work', '');
  result := 'done';
END
$$;
