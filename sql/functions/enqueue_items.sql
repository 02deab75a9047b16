-- Enqueues workflows: rows ENQUEUED, or DELAYED, with their inputs, in the caller's transaction. One array element per
-- workflow; p_parent_* are those of the workflow that enqueues them, or null. p_queues null: no queue, to be claimed at
-- once by whoever can run it. An array that is null stands for one of nulls.
--
-- Returns one row per item that is not enqueued under its nonce, by this call or by an earlier one whose reply was lost:
--   no_queue      there is no queue of this name (found_detail)
--   deduplicated  another workflow (found_detail) holds the deduplication ID
--   debounced     the call went to a workflow (found_detail) that has not started, and has what this call gave it
--   exists        the ID belongs to a workflow that this nonce did not enqueue; found_detail is its name
--   missing       try again: the ID was taken a moment ago and its row has been deleted meanwhile, or what the item is to
--                 take the place of comes earlier in the same call
--
-- p_cancelled_errors: what the holder of the deduplication ID is cancelled with, so that the item takes its place; null: it is
-- kept. p_debounce_keys: see take_debounce; p_delays_ms is then how long the start is pushed back, and p_max_waits_ms how long
-- at most after the first call.
--
-- Why it has this shape:
-- * Places in the line are those of the array: the clock, plus a microsecond an item.
-- * Deduplication IDs and debounce keys are taken one by one in one order, so that two calls cannot deadlock on them.
-- * Queues are locked against their deletion, in memory: a row lock would have all enqueuers write to one row.
-- * An ID that is there twice in one call is the first one's. The second is answered like one that comes later.
-- * enable_nestloop: what was inserted is joined back to the arrays, of which nobody knows how long they are; a nested loop
--   would be quadratic. Tables are looked up by subqueries, which the setting does not concern.
CREATE OR REPLACE FUNCTION enqueue_items(
  p_workflow_ids text[], p_nonces uuid[], p_names text[], p_instances text[], p_inputs text[], p_max_attempts integer[],
  p_timeouts_ms bigint[], p_attributes text[], p_queues text[], p_priorities integer[], p_keys text[],
  p_delays_ms bigint[], p_deduplication_ids text[], p_windows_ms bigint[],
  p_parent_id text, p_parent_seq integer, p_parent_close text,
  p_cancelled_errors text[] DEFAULT NULL, p_debounce_keys text[] DEFAULT NULL, p_max_waits_ms bigint[] DEFAULT NULL
)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET enable_mergejoin = off SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_count   integer := cardinality(p_workflow_ids);
  -- Per item: the holder of its deduplication ID, if that is another workflow; and whether this call took the ID.
  v_holders text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_took    boolean[] := array_fill(false, ARRAY[v_count]);
  -- The same for its debounce key; and whether it has to come again.
  v_targets text[] := array_fill(NULL::text, ARRAY[v_count]);
  v_opened  boolean[] := array_fill(false, ARRAY[v_count]);
  v_again   integer[] := '{}';
  v_unknown integer[];
  v_skipped integer[];
  v_first   integer;
  v_written integer;
  v_item    record;
  v_taken   record;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(concat_ws('.', current_schema(), 'queue in use', r.queue), 0))
     FROM (SELECT DISTINCT u.queue COLLATE "C" AS queue FROM unnest(p_queues) AS u (queue) WHERE u.queue IS NOT NULL
            ORDER BY 1) r;
  SELECT coalesce(array_agg(r.place), '{}') INTO v_unknown
    FROM unnest(p_queues) WITH ORDINALITY AS r (queue, place)
   WHERE r.queue IS NOT NULL AND NOT EXISTS (SELECT FROM queue q WHERE q.name = r.queue);

  -- Usually there are nothing but new IDs. Then an insert that makes no provision for another one's row, and with nothing to be
  -- joined back, takes 12.6 us a workflow, and what follows 15.2.
  IF v_unknown = '{}' AND p_deduplication_ids IS NULL AND p_debounce_keys IS NULL THEN
    BEGIN
      INSERT INTO workflow_status (workflow_id, name, instance, status, record_version, max_attempts, timeout_ms, wake_at,
                                   attributes, parent_id, parent_seq, parent_close, queue, priority, partition_key,
                                   queued_at, created_at, updated_at)
      SELECT a.workflow_id, a.name, a.instance, CASE WHEN a.delay_ms > 0 THEN 'DELAYED' ELSE 'ENQUEUED' END, 1,
             a.max_attempts, a.timeout_ms, CASE WHEN a.delay_ms > 0 THEN a.due_at END, a.attributes::jsonb,
             p_parent_id, p_parent_seq, p_parent_close, a.queue, coalesce(a.priority, 0), coalesce(a.partition_key, ''),
             a.due_at, v_now, v_now
        FROM (
          SELECT r.*, v_now + (r.place + coalesce(r.delay_ms, 0) * 1000) * interval '1 us' AS due_at
            FROM unnest(p_workflow_ids, p_names, p_instances, p_max_attempts, p_timeouts_ms, p_attributes, p_queues,
                        p_priorities, p_keys, p_delays_ms) WITH ORDINALITY
              AS r (workflow_id, name, instance, max_attempts, timeout_ms, attributes, queue, priority, partition_key,
                    delay_ms, place)
        ) a
       ORDER BY a.workflow_id COLLATE "C";
      INSERT INTO workflow_input (workflow_id, input, nonce, created_at)
      SELECT r.workflow_id, r.input, r.nonce, v_now
        FROM unnest(p_workflow_ids, p_inputs, p_nonces) AS r (workflow_id, input, nonce);
      RETURN;
    EXCEPTION WHEN unique_violation THEN
      -- Nothing of it is left.
    END;
  END IF;

  -- What an earlier try of this call has enqueued is let be, whatever has become of it, its queue and its deduplication ID since.
  v_skipped := v_unknown || ARRAY(
    SELECT r.place
      FROM unnest(p_workflow_ids, p_nonces) WITH ORDINALITY AS r (workflow_id, nonce, place)
     WHERE (SELECT i.nonce FROM workflow_input i WHERE i.workflow_id = r.workflow_id) = r.nonce)::integer[];

  FOR v_item IN
    SELECT r.place, coalesce(r.queue, '') AS queue, r.deduplication_id, r.workflow_id,
           v_now + r.window_ms * interval '1 ms' AS held_until,
           first_value(r.place) OVER (
             PARTITION BY coalesce(r.queue, ''), r.deduplication_id ORDER BY r.place) AS first_place
      FROM unnest(p_queues, p_deduplication_ids, p_workflow_ids, p_windows_ms) WITH ORDINALITY
        AS r (queue, deduplication_id, workflow_id, window_ms, place)
     WHERE r.deduplication_id IS NOT NULL AND r.place <> ALL (v_skipped)
     ORDER BY coalesce(r.queue, '') COLLATE "C", r.deduplication_id COLLATE "C", r.place
  LOOP
    v_first := v_item.first_place;
    IF v_first <> v_item.place AND p_cancelled_errors[v_item.place] IS NOT NULL THEN
      v_again := v_again || v_item.place::integer;
    ELSIF v_first <> v_item.place AND p_workflow_ids[v_first] <> v_item.workflow_id THEN
      v_holders[v_item.place] := coalesce(v_holders[v_first], p_workflow_ids[v_first]);
    ELSIF v_first <> v_item.place THEN
      v_holders[v_item.place] := v_holders[v_first];
    ELSE
      SELECT * INTO v_taken
        FROM take_deduplication(v_item.queue, v_item.deduplication_id, v_item.workflow_id, v_item.held_until);
      -- Unless an earlier try has enqueued it while this one waited, and a newer one has taken its place since.
      IF v_taken.holder IS NOT NULL AND p_cancelled_errors[v_first] IS NOT NULL
         AND (SELECT i.nonce FROM workflow_input i WHERE i.workflow_id = v_item.workflow_id) IS DISTINCT FROM p_nonces[v_first] THEN
        PERFORM cancel_tree(ARRAY[v_taken.holder], NULL, NULL, p_nonces[v_first], 'enqueue', 'A newer workflow takes its place.',
                            'cancel', p_cancelled_errors[v_first]);
        SELECT * INTO v_taken
          FROM take_deduplication(v_item.queue, v_item.deduplication_id, v_item.workflow_id, v_item.held_until);
      END IF;
      v_holders[v_first] := v_taken.holder;
      v_took[v_first] := v_taken.took;
    END IF;
  END LOOP;

  FOR v_item IN
    SELECT r.place, coalesce(r.queue, '') AS queue, r.name, r.debounce_key, r.workflow_id, r.nonce, r.delay_ms, r.max_wait_ms,
           first_value(r.place) OVER (
             PARTITION BY coalesce(r.queue, ''), r.name, r.debounce_key ORDER BY r.place DESC) AS last_place
      FROM unnest(p_queues, p_names, p_debounce_keys, p_workflow_ids, p_nonces, p_delays_ms, p_max_waits_ms) WITH ORDINALITY
        AS r (queue, name, debounce_key, workflow_id, nonce, delay_ms, max_wait_ms, place)
     WHERE r.debounce_key IS NOT NULL AND r.place <> ALL (v_skipped)
     ORDER BY coalesce(r.queue, '') COLLATE "C", r.name COLLATE "C", r.debounce_key COLLATE "C", r.place DESC
  LOOP
    v_first := v_item.place;
    IF v_item.last_place <> v_item.place THEN
      -- Of several in one call, the last one counts.
      v_targets[v_first] := coalesce(v_targets[v_item.last_place], p_workflow_ids[v_item.last_place]);
      CONTINUE;
    END IF;
    SELECT * INTO v_taken
      FROM take_debounce(v_item.queue, v_item.name, v_item.debounce_key, v_item.workflow_id, v_item.nonce);
    v_targets[v_first] := v_taken.holder;
    v_opened[v_first] := v_taken.took;
    IF v_taken.is_open THEN
      -- The last call counts, in everything. What is due already is not pushed back: it is in line.
      UPDATE workflow_status s
         SET instance = p_instances[v_first], max_attempts = p_max_attempts[v_first], timeout_ms = p_timeouts_ms[v_first],
             attributes = p_attributes[v_first]::jsonb, priority = coalesce(p_priorities[v_first], 0),
             partition_key = coalesce(p_keys[v_first], ''), record_version = s.record_version + 1, updated_at = v_now,
             wake_at = CASE WHEN s.status = 'DELAYED' THEN d.due_at END,
             queued_at = CASE WHEN s.status = 'DELAYED' THEN d.due_at ELSE s.queued_at END
        FROM (SELECT least(v_now + v_item.delay_ms * interval '1 ms',
                           v_taken.first_at + v_item.max_wait_ms * interval '1 ms') AS due_at) d
       WHERE s.workflow_id = v_taken.holder;
      UPDATE workflow_input i SET input = p_inputs[v_first], nonce = v_item.nonce WHERE i.workflow_id = v_taken.holder;
    END IF;
  END LOOP;

  WITH accepted AS MATERIALIZED (
    SELECT DISTINCT ON (r.workflow_id COLLATE "C") r.*,
           v_now + (r.place + coalesce(least(r.delay_ms, r.max_wait_ms), 0) * 1000) * interval '1 us' AS due_at
      FROM unnest(p_workflow_ids, p_nonces, p_names, p_instances, p_inputs, p_max_attempts, p_timeouts_ms, p_attributes,
                  p_queues, p_priorities, p_keys, p_delays_ms, p_deduplication_ids, p_windows_ms, p_max_waits_ms, v_holders,
                  v_targets)
        WITH ORDINALITY
        AS r (workflow_id, nonce, name, instance, input, max_attempts, timeout_ms, attributes,
              queue, priority, partition_key, delay_ms, deduplication_id, window_ms, max_wait_ms, holder, target, place)
     WHERE r.holder IS NULL AND r.target IS NULL AND r.place <> ALL (v_skipped) AND r.place <> ALL (v_again)
     ORDER BY r.workflow_id COLLATE "C", r.place
  ), enqueued AS (
    INSERT INTO workflow_status (workflow_id, name, instance, status, record_version, max_attempts, timeout_ms, wake_at,
                                 attributes, parent_id, parent_seq, parent_close, queue, priority, partition_key,
                                 queued_at, deduplication_id, created_at, updated_at)
    SELECT a.workflow_id, a.name, a.instance, CASE WHEN a.delay_ms > 0 THEN 'DELAYED' ELSE 'ENQUEUED' END, 1,
           a.max_attempts, a.timeout_ms, CASE WHEN a.delay_ms > 0 THEN a.due_at END, a.attributes::jsonb,
           p_parent_id, p_parent_seq, p_parent_close, a.queue, coalesce(a.priority, 0), coalesce(a.partition_key, ''),
           a.due_at, CASE WHEN a.window_ms IS NULL THEN a.deduplication_id END, v_now, v_now
      FROM accepted a
     ORDER BY a.workflow_id COLLATE "C"
    ON CONFLICT (workflow_id) DO NOTHING
    RETURNING workflow_status.workflow_id
  )
  INSERT INTO workflow_input (workflow_id, input, nonce, created_at)
  SELECT a.workflow_id, a.input, a.nonce, v_now FROM enqueued e JOIN accepted a ON a.workflow_id = e.workflow_id;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written = v_count THEN
    RETURN;
  END IF;

  RETURN QUERY
  WITH refused AS MATERIALIZED (
    SELECT r.*, CASE
             WHEN r.target IS NULL
                  AND (SELECT i.nonce FROM workflow_input i WHERE i.workflow_id = r.workflow_id) = r.nonce THEN NULL
             WHEN r.place = ANY (v_unknown) THEN 'no_queue'
             WHEN r.place = ANY (v_again) THEN 'missing'
             WHEN r.holder IS NOT NULL THEN 'deduplicated'
             WHEN r.target IS NOT NULL THEN 'debounced'
             WHEN EXISTS (SELECT FROM workflow_status s WHERE s.workflow_id = r.workflow_id) THEN 'exists'
             ELSE 'missing' END AS answer
      FROM unnest(p_workflow_ids, p_nonces, p_queues, p_names, p_deduplication_ids, p_debounce_keys, v_holders, v_took, v_targets,
                  v_opened) WITH ORDINALITY
        AS r (workflow_id, nonce, queue, name, deduplication_id, debounce_key, holder, took, target, opened, place)
  ), closed AS (
    DELETE FROM queue_debounce d USING refused r
     WHERE r.opened AND r.answer IS NOT NULL AND d.queue = coalesce(r.queue, '') AND d.name = r.name
       AND d.debounce_key = r.debounce_key
  ), given_back AS (
    -- Taken for a workflow that is not enqueued after all.
    DELETE FROM queue_deduplication d USING refused r
     WHERE r.took AND r.answer IS NOT NULL AND d.queue = coalesce(r.queue, '') AND d.deduplication_id = r.deduplication_id
  )
  SELECT r.place::integer, r.answer,
         (SELECT s.status FROM workflow_status s WHERE s.workflow_id = coalesce(r.holder, r.target, r.workflow_id)),
         NULL::bigint, NULL::bigint,
         CASE r.answer WHEN 'no_queue' THEN r.queue WHEN 'deduplicated' THEN r.holder WHEN 'debounced' THEN r.target
           ELSE (SELECT s.name FROM workflow_status s WHERE s.workflow_id = r.workflow_id) END
    FROM refused r
   WHERE r.answer IS NOT NULL;
END
$$;
