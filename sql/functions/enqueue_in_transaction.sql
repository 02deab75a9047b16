-- Enqueues workflows inside the caller's own transaction: they are there exactly if that commits. p_items is a JSON array of
-- objects, a form that every client library can bind; for answers see enqueue_items. Waits for whoever is just taking the
-- same ID, and notifies in the same transaction: executors are told when it commits.
CREATE OR REPLACE FUNCTION enqueue_in_transaction(p_items json)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_items record;
BEGIN
  SELECT array_agg(r.x ->> 'workflowId' ORDER BY r.place) AS workflow_ids,
         array_agg((r.x ->> 'nonce')::uuid ORDER BY r.place) AS nonces,
         array_agg(r.x ->> 'name' ORDER BY r.place) AS names,
         array_agg(r.x ->> 'instance' ORDER BY r.place) AS instances,
         array_agg(r.x ->> 'input' ORDER BY r.place) AS inputs,
         array_agg((r.x ->> 'maxAttempts')::integer ORDER BY r.place) AS max_attempts,
         array_agg((r.x ->> 'timeoutMs')::bigint ORDER BY r.place) AS timeouts_ms,
         array_agg(r.x ->> 'attributes' ORDER BY r.place) AS attributes,
         array_agg(r.x ->> 'queue' ORDER BY r.place) AS queues,
         array_agg((r.x ->> 'priority')::integer ORDER BY r.place) AS priorities,
         array_agg(r.x ->> 'key' ORDER BY r.place) AS keys,
         array_agg((r.x ->> 'delayMs')::bigint ORDER BY r.place) AS delays_ms,
         array_agg(r.x ->> 'deduplicationId' ORDER BY r.place) AS deduplication_ids,
         array_agg((r.x ->> 'windowMs')::bigint ORDER BY r.place) AS windows_ms,
         array_agg(r.x ->> 'cancelledError' ORDER BY r.place) AS cancelled_errors,
         array_agg(r.x ->> 'debounceKey' ORDER BY r.place) AS debounce_keys,
         array_agg((r.x ->> 'maxWaitMs')::bigint ORDER BY r.place) AS max_waits_ms
    INTO v_items
    FROM json_array_elements(p_items) WITH ORDINALITY AS r (x, place);
  IF v_items.workflow_ids IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT e.* FROM enqueue_items(v_items.workflow_ids, v_items.nonces, v_items.names, v_items.instances, v_items.inputs,
                                v_items.max_attempts, v_items.timeouts_ms, v_items.attributes, v_items.queues,
                                v_items.priorities, v_items.keys, v_items.delays_ms, v_items.deduplication_ids,
                                v_items.windows_ms, NULL, NULL, NULL, v_items.cancelled_errors, v_items.debounce_keys,
                                v_items.max_waits_ms) e;
  PERFORM pg_notify(current_schema() || '.work', '');
END
$$;
