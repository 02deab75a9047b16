-- Enqueues workflows in a transaction of its own; see enqueue_items for arguments and answers. Whoever calls it tells the
-- executors by a notification on <schema>.work afterwards: a NOTIFY in here would take a lock that all commits share.
--
-- lock_timeout: an ID or deduplication ID that an open transaction is just taking makes the whole batch wait. The caller
-- then finds the item by splitting, and goes on without it.
CREATE OR REPLACE FUNCTION enqueue_batch(
  p_workflow_ids text[], p_nonces uuid[], p_names text[], p_instances text[], p_inputs text[], p_max_attempts integer[],
  p_timeouts_ms bigint[], p_attributes text[], p_queues text[], p_priorities integer[], p_keys text[],
  p_delays_ms bigint[], p_deduplication_ids text[], p_windows_ms bigint[], p_cancelled_errors text[], p_debounce_keys text[],
  p_max_waits_ms bigint[]
)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '50ms'
AS $$
BEGIN
  RETURN QUERY
  SELECT e.* FROM enqueue_items(p_workflow_ids, p_nonces, p_names, p_instances, p_inputs, p_max_attempts, p_timeouts_ms,
                                p_attributes, p_queues, p_priorities, p_keys, p_delays_ms, p_deduplication_ids,
                                p_windows_ms, NULL, NULL, NULL, p_cancelled_errors, p_debounce_keys, p_max_waits_ms) e;
END
$$;
