-- Picks and locks up to p_take waiting workflows of one queue, within its limits. The lowest priority number goes first; at one
-- priority the keys take turns, beginning after p_after_key (what was served last, as last_key says); within one key, the
-- order of the line. So what one key has waiting does not delay another one's.
--
-- is_limited: something may wait that a limit, or somebody else's claim, keeps back; again_in_ms, if it is known when to
-- ask again. has_more: p_take was all that kept it back. p_pending: workflows that this transaction has picked before, by
-- recovering them, and that do not count as this executor's yet. p_only restricts the pick to these IDs, out of turn.
--
-- Each key gets an equal share of the room; what a key leaves of it goes to those that have more, in a further round. Keys
-- are looked at c_keys a call, whether they have room or not; the next call goes on after them.
CREATE OR REPLACE FUNCTION pick_from_queue(
  p_queue text, p_take integer, p_executor_id text, p_incarnation bigint, p_app_version text, p_names text[],
  p_only text[], p_after_key text, p_pending text[],
  OUT workflow_ids text[], OUT last_key text, OUT is_limited boolean, OUT has_more boolean,
  OUT again_in_ms double precision
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  c_keys     CONSTANT integer := 500;
  c_soon_ms  CONSTANT double precision := 20;
  v_room     record;
  v_left     integer;
  v_share    integer;
  v_priority bigint := -2147483649;
  v_keys     text[];
  v_more     text[];
  v_taken    text[] := '{}';
  v_looked   integer := 0;
  v_key      text;
  v_limits   record;
  v_found    text[];
BEGIN
  workflow_ids := '{}';
  is_limited := false;
  has_more := false;
  SELECT * INTO v_room FROM queue_room(p_queue, p_executor_id, p_incarnation);
  again_in_ms := v_room.again_in_ms;
  SELECT coalesce(array_agg(s.partition_key), '{}') INTO v_taken
    FROM workflow_status s WHERE s.workflow_id = ANY (p_pending) AND s.queue = p_queue;
  v_left := greatest(least(p_take, v_room.slots, v_room.runs - cardinality(v_taken)), 0);
  IF v_left = 0 THEN
    is_limited := true;
    RETURN;
  END IF;
  IF (v_room.definition).name IS NULL OR (v_room.definition).paused THEN
    RETURN;
  END IF;

  IF p_only IS NOT NULL THEN
    FOR v_limits IN
      SELECT s.workflow_id, s.partition_key FROM workflow_status s
       WHERE s.workflow_id = ANY (p_only) AND s.queue = p_queue AND s.status = 'ENQUEUED' AND s.name = ANY (p_names)
         AND (s.app_version = p_app_version OR s.any_version OR s.epoch = 0 AND s.forked_from IS NULL)
       LIMIT v_left
         FOR NO KEY UPDATE SKIP LOCKED
    LOOP
      IF (SELECT coalesce(least(r.slots, r.runs), 1) FROM key_room(v_room.definition, v_limits.partition_key, v_taken) r) > 0 THEN
        workflow_ids := workflow_ids || v_limits.workflow_id;
        v_taken := v_taken || v_limits.partition_key;
      END IF;
    END LOOP;
    RETURN;
  END IF;

  LOOP
    SELECT s.priority INTO v_priority
      FROM workflow_status s
     WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority > v_priority
     ORDER BY s.priority
     LIMIT 1;
    EXIT WHEN NOT FOUND;
    IF v_left = 0 OR v_looked >= c_keys THEN
      is_limited := true;
      again_in_ms := CASE WHEN v_left > 0 THEN least(again_in_ms, c_soon_ms) ELSE again_in_ms END;
      EXIT;
    END IF;
    v_keys := waiting_keys(p_queue, v_priority::integer, p_after_key, c_keys - v_looked);
    v_looked := v_looked + cardinality(v_keys);
    WHILE cardinality(v_keys) > 0 AND v_left > 0 LOOP
      v_share := greatest(v_left / cardinality(v_keys), 1);
      v_more := '{}';
      FOREACH v_key IN ARRAY v_keys LOOP
        EXIT WHEN v_left = 0;
        last_key := v_key;
        SELECT least(v_share, v_left, r.slots, r.runs) AS take, r.free_at INTO v_limits
          FROM key_room(v_room.definition, v_key, v_taken) r;
        IF v_limits.take = 0 THEN
          is_limited := true;
          again_in_ms := least(again_in_ms, greatest(extract(epoch FROM v_limits.free_at - clock()) * 1000, 0) + 1);
          CONTINUE;
        END IF;
        SELECT coalesce(array_agg(c.workflow_id), '{}') INTO v_found FROM (
          SELECT s.workflow_id
            FROM workflow_status s
           WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = v_priority AND s.partition_key = v_key
             AND s.name = ANY (p_names)
             -- What has no record runs on any version.
             AND (s.app_version = p_app_version OR s.any_version OR s.epoch = 0 AND s.forked_from IS NULL)
             AND s.workflow_id <> ALL (workflow_ids)
           ORDER BY s.queued_at
           LIMIT v_limits.take
             FOR NO KEY UPDATE SKIP LOCKED
        ) c;
        workflow_ids := workflow_ids || v_found;
        v_taken := v_taken || array_fill(v_key, ARRAY[cardinality(v_found)]);
        v_left := v_left - cardinality(v_found);
        IF cardinality(v_found) = v_limits.take THEN
          v_more := v_more || v_key;
        END IF;
      END LOOP;
      v_keys := v_more;
    END LOOP;
    -- The room is used up, and there may be more of these keys.
    is_limited := is_limited OR v_left = 0;
    has_more := cardinality(workflow_ids) = p_take;
  END LOOP;
END
$$;
