-- Enqueues workflows: rows ENQUEUED, or DELAYED, with their inputs, in the caller's transaction. One array element per
-- workflow; p_parent_* are those of the workflow that enqueues them, or null. p_queues null: no queue, to be claimed at
-- once by whoever can run it.
--
-- Returns one row per item that is not enqueued under its nonce, by this call or by an earlier one whose reply was lost:
--   no_queue      there is no queue of this name (found_detail)
--   deduplicated  another workflow (found_detail) holds the deduplication ID
--   exists        the ID belongs to a workflow that this nonce did not enqueue; found_detail is its name
--   missing       the ID was taken a moment ago and its row has been deleted meanwhile: try again
--
-- Why it has this shape:
-- * Places in the line are those of the array: the clock, plus a microsecond an item.
-- * Deduplication IDs are taken one by one in one order, so that two calls cannot deadlock on them.
-- * An ID that is there twice in one call is the first one's. The second is answered like one that comes later.
-- * enable_nestloop: what was inserted is joined back to the arrays, of which nobody knows how long they are; a nested loop
--   would be quadratic. Tables are looked up by subqueries, which the setting does not concern.
CREATE OR REPLACE FUNCTION enqueue_items(
  p_workflow_ids text[], p_nonces uuid[], p_names text[], p_instances text[], p_inputs text[], p_max_attempts integer[],
  p_timeouts_ms bigint[], p_attributes text[], p_queues text[], p_priorities integer[], p_keys text[],
  p_delays_ms bigint[], p_deduplication_ids text[], p_windows_ms bigint[],
  p_parent_id text, p_parent_seq integer, p_parent_close text
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
  v_unknown integer[];
  v_first   integer;
  v_written integer;
  v_item    record;
  v_taken   record;
BEGIN
  SELECT coalesce(array_agg(r.place), '{}') INTO v_unknown
    FROM unnest(p_queues) WITH ORDINALITY AS r (queue, place)
   WHERE r.queue IS NOT NULL AND NOT EXISTS (SELECT FROM queue q WHERE q.name = r.queue);

  FOR v_item IN
    SELECT r.place, coalesce(r.queue, '') AS queue, r.deduplication_id, r.workflow_id,
           v_now + r.window_ms * interval '1 ms' AS held_until,
           first_value(r.place) OVER (
             PARTITION BY coalesce(r.queue, ''), r.deduplication_id ORDER BY r.place) AS first_place
      FROM unnest(p_queues, p_deduplication_ids, p_workflow_ids, p_windows_ms) WITH ORDINALITY
        AS r (queue, deduplication_id, workflow_id, window_ms, place)
     WHERE r.deduplication_id IS NOT NULL AND r.place <> ALL (v_unknown)
     ORDER BY coalesce(r.queue, '') COLLATE "C", r.deduplication_id COLLATE "C", r.place
  LOOP
    v_first := v_item.first_place;
    IF v_first <> v_item.place AND p_workflow_ids[v_first] <> v_item.workflow_id THEN
      v_holders[v_item.place] := coalesce(v_holders[v_first], p_workflow_ids[v_first]);
    ELSIF v_first <> v_item.place THEN
      v_holders[v_item.place] := v_holders[v_first];
    ELSE
      SELECT * INTO v_taken
        FROM take_deduplication(v_item.queue, v_item.deduplication_id, v_item.workflow_id, v_item.held_until);
      v_holders[v_first] := v_taken.holder;
      v_took[v_first] := v_taken.took;
    END IF;
  END LOOP;

  WITH accepted AS MATERIALIZED (
    SELECT DISTINCT ON (r.workflow_id COLLATE "C") r.*, v_now + (r.place + coalesce(r.delay_ms, 0) * 1000) * interval '1 us' AS due_at
      FROM unnest(p_workflow_ids, p_nonces, p_names, p_instances, p_inputs, p_max_attempts, p_timeouts_ms, p_attributes,
                  p_queues, p_priorities, p_keys, p_delays_ms, p_deduplication_ids, p_windows_ms, v_holders)
        WITH ORDINALITY
        AS r (workflow_id, nonce, name, instance, input, max_attempts, timeout_ms, attributes,
              queue, priority, partition_key, delay_ms, deduplication_id, window_ms, holder, place)
     WHERE r.holder IS NULL AND r.place <> ALL (v_unknown)
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
  INSERT INTO workflow_input (workflow_id, input, nonce)
  SELECT a.workflow_id, a.input, a.nonce FROM enqueued e JOIN accepted a ON a.workflow_id = e.workflow_id;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written = v_count THEN
    RETURN;
  END IF;

  RETURN QUERY
  WITH refused AS MATERIALIZED (
    SELECT r.*, CASE
             WHEN r.place = ANY (v_unknown) THEN 'no_queue'
             WHEN r.holder IS NOT NULL THEN 'deduplicated'
             WHEN (SELECT i.nonce FROM workflow_input i WHERE i.workflow_id = r.workflow_id) = r.nonce THEN NULL
             WHEN EXISTS (SELECT FROM workflow_status s WHERE s.workflow_id = r.workflow_id) THEN 'exists'
             ELSE 'missing' END AS answer
      FROM unnest(p_workflow_ids, p_nonces, p_queues, p_deduplication_ids, v_holders, v_took) WITH ORDINALITY
        AS r (workflow_id, nonce, queue, deduplication_id, holder, took, place)
  ), given_back AS (
    -- Taken for a workflow that is not enqueued after all.
    DELETE FROM queue_deduplication d USING refused r
     WHERE r.took AND r.answer IS NOT NULL AND d.queue = coalesce(r.queue, '') AND d.deduplication_id = r.deduplication_id
  )
  SELECT r.place::integer, r.answer,
         (SELECT s.status FROM workflow_status s WHERE s.workflow_id = coalesce(r.holder, r.workflow_id)),
         NULL::bigint, NULL::bigint,
         CASE r.answer WHEN 'no_queue' THEN r.queue WHEN 'deduplicated' THEN r.holder
           ELSE (SELECT s.name FROM workflow_status s WHERE s.workflow_id = r.workflow_id) END
    FROM refused r
   WHERE r.answer IS NOT NULL;
END
$$;
