-- How many more workflows of one key of a queue may be taken. p_taken: keys of what this transaction has picked and not yet
-- marked, which will need a slot and count for the rate; p_recovered: of what it has recovered, which has its slot and only
-- counts for the rate. slots and rate as in queue_room, whose lock the caller holds; free_at: when the rate lets something
-- through again, if it lets nothing through now. Items without a key have no limit here.
-- Called once a key: the planner's settings are the caller's.
CREATE OR REPLACE FUNCTION key_room(
  p_queue queue, p_key text, p_taken text[], p_recovered text[], OUT slots integer, OUT rate integer,
  OUT free_at timestamptz
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_now   timestamptz;
  v_taken integer;
BEGIN
  IF p_key = '' OR coalesce(p_queue.key_concurrency, p_queue.key_rate_limit) IS NULL THEN
    RETURN;
  END IF;
  v_taken := cardinality(array_positions(p_taken, p_key));
  IF p_queue.key_concurrency IS NOT NULL THEN
    SELECT greatest(p_queue.key_concurrency - v_taken - count(*), 0) INTO slots
      FROM (SELECT FROM workflow_status s
             WHERE s.queue = p_queue.name AND s.partition_key = p_key AND s.partition_key <> ''
               AND s.status IN ('PENDING', 'SUSPENDED')
             LIMIT p_queue.key_concurrency) held;
  END IF;
  IF p_queue.key_rate_limit IS NOT NULL THEN
    v_now := clock();
    v_taken := v_taken + cardinality(array_positions(p_recovered, p_key));
    SELECT greatest(p_queue.key_rate_limit - v_taken - count(*), 0) INTO rate
      FROM queue_start t
     WHERE t.queue = p_queue.name AND t.partition_key = p_key
       AND t.started_at > v_now - p_queue.key_rate_period_ms * interval '1 ms';
    IF rate = 0 THEN
      SELECT t.started_at + p_queue.key_rate_period_ms * interval '1 ms' INTO free_at
        FROM queue_start t WHERE t.queue = p_queue.name AND t.partition_key = p_key
       ORDER BY t.started_at DESC OFFSET p_queue.key_rate_limit - 1 LIMIT 1;
    END IF;
  END IF;
END
$$;
