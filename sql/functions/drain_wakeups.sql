-- Looks at workflows that something has been written for: makes those that are suspended due at once. Returns how many
-- wake-ups it has dealt with: as many as asked for, or more, means that there may be others.
--
-- Nothing is lost: a wake-up is committed together with what it tells of. It is removed only by a transaction that holds the
-- lock of the workflow's row, and suspend_workflow looks for what is waited for under the same lock. So either the workflow
-- is suspended by now, and made due here; or it will be later, and will see then what was written. A row that is locked by
-- somebody else keeps its wake-up for the next time, and what lies behind such wake-ups is looked for until as many as asked for
-- are dealt with: a row that is locked for long, to which a thousand messages are sent, must not keep the others asleep.
CREATE OR REPLACE FUNCTION drain_wakeups(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_after   uuid := '00000000-0000-0000-0000-000000000000';
  v_wakeups uuid[];
  v_ids     text[];
  v_locked  text[];
  -- Workflows that somebody else has locked.
  v_held    text[] := '{}';
  v_rows    integer;
  v_dealt   integer := 0;
BEGIN
  LOOP
    SELECT array_agg(u.wakeup_id ORDER BY u.wakeup_id), array_agg(DISTINCT u.workflow_id) INTO v_wakeups, v_ids
      FROM (SELECT * FROM wakeup w
             WHERE w.wakeup_id > v_after AND w.workflow_id <> ALL (v_held)
             ORDER BY w.wakeup_id LIMIT p_limit FOR UPDATE SKIP LOCKED) u;
    EXIT WHEN v_wakeups IS NULL;
    SELECT coalesce(array_agg(l.workflow_id), '{}') INTO v_locked FROM (
      SELECT s.workflow_id FROM workflow_status s WHERE s.workflow_id = ANY (v_ids)
       ORDER BY s.workflow_id FOR NO KEY UPDATE SKIP LOCKED
    ) l;
    UPDATE workflow_status s
       SET wake_at = v_now, record_version = s.record_version + 1, updated_at = v_now
     WHERE s.workflow_id = ANY (v_locked) AND s.status = 'SUSPENDED' AND (s.wake_at IS NULL OR s.wake_at > v_now);
    DELETE FROM wakeup u
     WHERE u.wakeup_id = ANY (v_wakeups)
       AND (u.workflow_id = ANY (v_locked)
            OR NOT EXISTS (SELECT FROM workflow_status s WHERE s.workflow_id = u.workflow_id));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    v_dealt := v_dealt + v_rows;
    EXIT WHEN v_dealt >= p_limit OR cardinality(v_wakeups) < p_limit;
    v_after := v_wakeups[cardinality(v_wakeups)];
    v_held := v_held || ARRAY(SELECT i.workflow_id FROM unnest(v_ids) AS i (workflow_id) WHERE i.workflow_id <> ALL (v_locked));
  END LOOP;
  RETURN v_dealt;
END
$$;
