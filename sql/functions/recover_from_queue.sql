-- Picks and locks up to p_take workflows of one queue whose owner's lease has expired, within what the queue's limits let
-- this executor run. Their slots they have. Answers as pick_from_queue; a queue that is gone has no limits.
CREATE OR REPLACE FUNCTION recover_from_queue(
  p_queue text, p_take integer, p_executor_id text, p_incarnation bigint, p_app_version text, p_names text[], p_only text[],
  OUT workflow_ids text[], OUT is_limited boolean, OUT is_soon boolean, OUT again_in_ms double precision
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_room  record;
  v_left  integer;
  v_taken text[] := '{}';
  v_found record;
  v_key   record;
BEGIN
  workflow_ids := '{}';
  SELECT * INTO v_room FROM queue_room(p_queue, p_executor_id, p_incarnation);
  is_soon := v_room.is_contended;
  v_left := least(p_take, v_room.own, v_room.rate);
  is_limited := v_left = 0;
  IF is_limited AND v_room.free_at IS NOT NULL THEN
    again_in_ms := greatest(extract(epoch FROM v_room.free_at - v_now) * 1000, 0) + 1;
  END IF;
  FOR v_found IN
    SELECT r.workflow_id, r.partition_key
      FROM executor e
     CROSS JOIN LATERAL (
       SELECT s.workflow_id, s.partition_key
         FROM workflow_status s
        WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
          AND s.queue = p_queue AND s.name = ANY (p_names) AND s.app_version = p_app_version
          AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
        OFFSET 0
     ) r
     WHERE e.lease_until <= v_now
  LOOP
    IF v_left = 0 THEN
      is_limited := true;
      EXIT;
    END IF;
    SELECT * INTO v_key FROM key_room(v_room.definition, v_found.partition_key, '{}', v_taken);
    IF v_key.rate = 0 THEN
      is_limited := true;
      IF v_key.free_at IS NOT NULL THEN
        again_in_ms := least(again_in_ms, greatest(extract(epoch FROM v_key.free_at - v_now) * 1000, 0) + 1);
      END IF;
      CONTINUE;
    END IF;
    -- Looked for without a lock: somebody may have taken it, or it may have ended.
    PERFORM FROM workflow_status s
      JOIN executor e ON e.executor_id = s.executor_id AND e.incarnation = s.incarnation
     WHERE s.workflow_id = v_found.workflow_id AND s.status = 'PENDING' AND s.queue = p_queue AND e.lease_until <= v_now
       FOR NO KEY UPDATE OF s SKIP LOCKED;
    IF FOUND THEN
      workflow_ids := workflow_ids || v_found.workflow_id;
      v_taken := v_taken || v_found.partition_key;
      v_left := v_left - 1;
    END IF;
  END LOOP;
END
$$;
