-- The keys of a queue that have something waiting at one priority, at most p_limit: those after p_after_key, then the
-- others from the beginning, so that each has its turn. One look into the index a key, however long its line is.
CREATE OR REPLACE FUNCTION waiting_keys(p_queue text, p_priority integer, p_after_key text, p_limit integer)
RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  v_keys  text[] := '{}';
  -- The empty text is a key, too: the first one.
  v_key   text := coalesce(p_after_key, '');
  v_from  timestamptz := CASE WHEN p_after_key IS NULL THEN '-infinity' ELSE 'infinity' END;
  v_wraps boolean := p_after_key IS NOT NULL;
BEGIN
  WHILE cardinality(v_keys) < p_limit LOOP
    SELECT s.partition_key INTO v_key
      FROM workflow_status s
     WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = p_priority
       AND (s.partition_key, s.queued_at) > (v_key, v_from)
     ORDER BY s.partition_key, s.queued_at
     LIMIT 1;
    IF FOUND AND (v_wraps OR p_after_key IS NULL OR v_key <= p_after_key COLLATE "C") THEN
      v_keys := v_keys || v_key;
      v_from := 'infinity';
    ELSIF v_wraps THEN
      v_wraps := false;
      v_key := '';
      v_from := '-infinity';
    ELSE
      EXIT;
    END IF;
  END LOOP;
  RETURN v_keys;
END
$$;
