-- Deletes deduplication IDs that nobody holds any more, and debounce keys whose workflow has started: of the p_limit of each
-- that were looked at longest ago. Called again and
-- again by every executor, so that the table does not grow with IDs that are used once.
CREATE OR REPLACE FUNCTION clear_deduplication(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_looked  queue_deduplication[];
  v_keys    queue_debounce[];
  v_cleared integer;
BEGIN
  -- The rows are judged by a statement of its own once they are locked: this one does not see the workflow of an ID that
  -- a long transaction takes while this one runs.
  SELECT array_agg(l.d) INTO v_looked FROM (
    SELECT d FROM queue_deduplication d
     -- Not what was taken a moment ago: it is in use, most likely.
     WHERE d.checked_at < v_now - interval '1 minute'
     ORDER BY d.checked_at
     LIMIT p_limit
       FOR NO KEY UPDATE SKIP LOCKED
  ) l;
  WITH looked AS MATERIALIZED (
    SELECT d.queue, d.deduplication_id,
           coalesce(d.held_until > v_now, EXISTS (
             SELECT FROM workflow_status s
              WHERE s.workflow_id = d.workflow_id
                AND s.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'))) AS is_held
      FROM unnest(v_looked) d
  ), kept AS (
    UPDATE queue_deduplication d SET checked_at = v_now FROM looked l
     WHERE l.is_held AND d.queue = l.queue AND d.deduplication_id = l.deduplication_id
  ), cleared AS (
    DELETE FROM queue_deduplication d USING looked l
     WHERE NOT l.is_held AND d.queue = l.queue AND d.deduplication_id = l.deduplication_id
    RETURNING 1
  )
  SELECT count(*) INTO v_cleared FROM cleared;

  SELECT array_agg(l.d) INTO v_keys FROM (
    SELECT d FROM queue_debounce d
     WHERE d.checked_at < v_now - interval '1 minute'
     ORDER BY d.checked_at
     LIMIT p_limit
       FOR NO KEY UPDATE SKIP LOCKED
  ) l;
  WITH looked AS MATERIALIZED (
    SELECT d.queue, d.name, d.debounce_key, EXISTS (
             SELECT FROM workflow_status s
              WHERE s.workflow_id = d.workflow_id AND s.status IN ('DELAYED', 'ENQUEUED') AND s.epoch = 0) AS is_open
      FROM unnest(v_keys) d
  ), kept AS (
    UPDATE queue_debounce d SET checked_at = v_now FROM looked l
     WHERE l.is_open AND d.queue = l.queue AND d.name = l.name AND d.debounce_key = l.debounce_key
  ), cleared AS (
    DELETE FROM queue_debounce d USING looked l
     WHERE NOT l.is_open AND d.queue = l.queue AND d.name = l.name AND d.debounce_key = l.debounce_key
    RETURNING 1
  )
  SELECT v_cleared + count(*) INTO v_cleared FROM cleared;
  RETURN v_cleared;
END
$$;
