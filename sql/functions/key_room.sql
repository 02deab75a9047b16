-- How many more workflows of one key of a queue may be taken. p_taken: keys of what this transaction has picked and not yet
-- marked. slots and runs as in queue_room, whose lock the caller holds. Items without a key have no limit here.
-- Called once a key: the planner's settings are the caller's.
CREATE OR REPLACE FUNCTION key_room(
  p_queue queue, p_key text, p_taken text[], OUT slots integer, OUT runs integer, OUT free_at timestamptz
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_taken integer := cardinality(array_positions(p_taken, p_key));
BEGIN
  IF p_key = '' THEN
    RETURN;
  END IF;
  IF p_queue.key_concurrency IS NOT NULL THEN
    SELECT greatest(p_queue.key_concurrency - v_taken - count(*), 0) INTO slots
      FROM (SELECT FROM workflow_status s
             WHERE s.queue = p_queue.name AND s.partition_key = p_key AND s.status IN ('PENDING', 'SUSPENDED')
             LIMIT p_queue.key_concurrency) held;
  END IF;
  IF p_queue.key_rate_limit IS NOT NULL THEN
    SELECT greatest(p_queue.key_rate_limit - v_taken - count(*), 0) INTO runs
      FROM queue_start t
     WHERE t.queue = p_queue.name AND t.partition_key = p_key
       AND t.started_at > v_now - p_queue.key_rate_period_ms * interval '1 ms';
    IF runs = 0 THEN
      SELECT t.started_at + p_queue.key_rate_period_ms * interval '1 ms' INTO free_at
        FROM queue_start t WHERE t.queue = p_queue.name AND t.partition_key = p_key
       ORDER BY t.started_at DESC OFFSET p_queue.key_rate_limit - 1 LIMIT 1;
    END IF;
  END IF;
END
$$;
