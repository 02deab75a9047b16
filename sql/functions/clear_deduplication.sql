-- Deletes deduplication IDs that nobody holds any more: of the p_limit that were looked at longest ago. Called again and
-- again by every executor, so that the table does not grow with IDs that are used once.
CREATE OR REPLACE FUNCTION clear_deduplication(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_cleared integer;
BEGIN
  WITH looked AS MATERIALIZED (
    SELECT d.queue, d.deduplication_id,
           coalesce(d.held_until > v_now, EXISTS (
             SELECT FROM workflow_status s
              WHERE s.workflow_id = d.workflow_id
                AND s.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'))) AS is_held
      FROM queue_deduplication d
     -- Not what was taken a moment ago: its workflow may have been committed after this statement began.
     WHERE d.checked_at < v_now - interval '1 minute'
     ORDER BY d.checked_at
     LIMIT p_limit
       FOR NO KEY UPDATE OF d SKIP LOCKED
  ), kept AS (
    UPDATE queue_deduplication d SET checked_at = v_now FROM looked l
     WHERE l.is_held AND d.queue = l.queue AND d.deduplication_id = l.deduplication_id
  ), cleared AS (
    DELETE FROM queue_deduplication d USING looked l
     WHERE NOT l.is_held AND d.queue = l.queue AND d.deduplication_id = l.deduplication_id
    RETURNING 1
  )
  SELECT count(*) INTO v_cleared FROM cleared;
  RETURN v_cleared;
END
$$;
