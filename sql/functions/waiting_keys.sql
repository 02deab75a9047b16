-- The keys of a queue that have something waiting at one priority, at most p_limit, in a circle: from the one after p_after on
-- to p_until, which comes last. p_until null: to the end, without a circle. One look into the index a key, however long its
-- line is; none for the first of all, p_first, whose front the caller knows: p_front. fronts: where in the table the first of
-- each key stands; see waiting_fronts. is_whole: the circle has come to its end.
CREATE OR REPLACE FUNCTION waiting_keys(
  p_queue text, p_priority integer, p_after text, p_until text, p_limit integer, p_first text, p_front tid,
  OUT keys text[], OUT fronts tid[], OUT is_whole boolean
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  v_key   text := p_after;
  v_front tid;
  -- Beyond p_until the circle goes on from the first key, which may be the empty text.
  v_wraps boolean := p_until IS NOT NULL AND (p_after >= p_until COLLATE "C");
BEGIN
  keys := '{}';
  fronts := '{}';
  is_whole := false;
  WHILE cardinality(keys) < p_limit LOOP
    IF v_key IS NULL THEN
      v_key := p_first;
      v_front := p_front;
    ELSE
      SELECT s.partition_key, s.ctid INTO v_key, v_front
        FROM workflow_status s
       WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = p_priority AND s.partition_key > v_key
       ORDER BY s.partition_key, s.name,
                (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END),
                s.queued_at
       LIMIT 1;
    END IF;
    IF v_key IS NOT NULL AND (v_wraps OR p_until IS NULL OR v_key <= p_until COLLATE "C") THEN
      keys := keys || v_key;
      fronts := fronts || v_front;
    ELSIF v_wraps THEN
      v_wraps := false;
      v_key := NULL;
    ELSE
      is_whole := true;
      RETURN;
    END IF;
  END LOOP;
  is_whole := coalesce(v_key = p_until, false);
END
$$;
