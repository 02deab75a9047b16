-- Picks and locks up to p_take waiting workflows of one queue, within its limits. The lowest priority number goes first; at one
-- priority the keys take turns, beginning after the one that was served last; within one key, the order of the line. So
-- what one key has waiting does not delay another one's.
--
-- is_limited: something may wait that a limit, or somebody else's claim, keeps back; again_in_ms, if it is known when to
-- ask again. is_soon: ask again soon, since somebody else is just claiming, or since not everything was looked at. has_more:
-- p_take was all that kept it back. p_recovered, p_due: workflows that this transaction has picked before, and that are not
-- counted as this executor's yet. p_only restricts the pick to these IDs, out of turn. p_front: where in the table the first of
-- the queue stands, as far as is known; see waiting_fronts.
--
-- Each key gets an equal share of the room; what a key leaves of it goes to those that have more, in a further round. Keys
-- are looked at c_keys a call, whether they have room or not. turn is for the next call, as p_turn:
--   key             the one that was served last
--   priority, from  where this call stopped, having looked at enough: the next one goes on there, so that however many keys
--                   are kept back, what waits behind them has its turn
CREATE OR REPLACE FUNCTION pick_from_queue(
  p_queue text, p_take integer, p_executor_id text, p_incarnation bigint, p_app_version text, p_names text[],
  p_only text[], p_turn jsonb, p_recovered text[], p_due text[], p_front tid,
  OUT workflow_ids text[], OUT turn jsonb, OUT is_limited boolean, OUT is_soon boolean, OUT has_more boolean,
  OUT again_in_ms double precision
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
  c_keys      CONSTANT integer := 500;
  v_now       timestamptz := clock();
  -- Where each circle of keys begins and ends.
  v_start     text := p_turn ->> 'key';
  v_served    text := v_start;
  -- Where this call goes on with a circle that the call before has begun.
  v_resumed   bigint := (p_turn ->> 'priority')::bigint;
  v_priority  bigint := coalesce(v_resumed, -2147483648) - 1;
  v_circle    record;
  v_place     tid;
  v_front     record;
  v_keys      text[];
  v_fronts    tid[];
  -- Places in v_keys of those that have more.
  v_more      integer[];
  v_room      record;
  v_limits_keys boolean;
  v_recovered text[];
  v_taken     text[] := '{}';
  v_left      integer;
  v_share     integer;
  v_looked    integer := 0;
  v_key       text;
  v_take      integer;
  v_limits    record;
  v_found     text[];
BEGIN
  workflow_ids := '{}';
  turn := p_turn;
  has_more := false;
  SELECT * INTO v_room FROM queue_room(p_queue, p_executor_id, p_incarnation);
  is_soon := v_room.is_contended;
  is_limited := is_soon;
  IF is_soon OR (v_room.definition).paused THEN
    RETURN;
  END IF;
  SELECT coalesce(array_agg(s.partition_key), '{}') INTO v_recovered
    FROM workflow_status s WHERE s.workflow_id = ANY (p_recovered) AND s.queue = p_queue;
  v_left := greatest(least(
    p_take, v_room.slots, v_room.rate - cardinality(v_recovered),
    v_room.own - (SELECT count(*) FROM workflow_status s
                   WHERE s.workflow_id = ANY (p_recovered || p_due) AND s.queue = p_queue)), 0);
  IF v_left = 0 THEN
    is_limited := true;
    IF v_room.free_at IS NOT NULL THEN
      again_in_ms := greatest(extract(epoch FROM v_room.free_at - v_now) * 1000, 0) + 1;
    END IF;
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
      IF (SELECT coalesce(least(r.slots, r.rate), 1)
            FROM key_room(v_room.definition, v_limits.partition_key, v_taken, v_recovered) r) > 0 THEN
        workflow_ids := workflow_ids || v_limits.workflow_id;
        v_taken := v_taken || v_limits.partition_key;
      END IF;
    END LOOP;
    RETURN;
  END IF;

  v_limits_keys := coalesce((v_room.definition).key_concurrency, (v_room.definition).key_rate_limit) IS NOT NULL;
  -- With limits, fronts are found after the slots have been counted. What was given back in between, and has now left a slot,
  -- comes before what was in front until then.
  IF v_resumed IS NULL AND coalesce((v_room.definition).concurrency, (v_room.definition).executor_concurrency) IS NULL
     AND NOT v_limits_keys THEN
    v_place := p_front;
  END IF;
  LOOP
    SELECT s.priority, s.partition_key, s.ctid AS place INTO v_front
      FROM workflow_status s
     WHERE s.ctid = v_place AND s.status = 'ENQUEUED' AND s.queue = p_queue;
    v_place := NULL;
    IF NOT FOUND THEN
      SELECT s.priority, s.partition_key, s.ctid AS place INTO v_front
        FROM workflow_status s
       WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority > v_priority
       ORDER BY s.priority, s.partition_key, s.name,
                (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END),
                s.queued_at
       LIMIT 1;
    END IF;
    IF NOT FOUND THEN
      -- What came in front of where this call went on is for the next one, which begins at the beginning.
      is_soon := v_resumed IS NOT NULL;
      turn := jsonb_build_object('key', v_served);
      EXIT;
    END IF;
    IF v_left = 0 THEN
      is_limited := true;
      turn := jsonb_build_object('key', v_served);
      EXIT;
    END IF;
    v_priority := v_front.priority;
    SELECT * INTO v_circle
      FROM waiting_keys(p_queue, v_front.priority, CASE WHEN v_priority = v_resumed THEN p_turn ->> 'from' ELSE v_start END,
                        v_start, c_keys - v_looked, v_front.partition_key, v_front.place);
    v_looked := v_looked + cardinality(v_circle.keys);
    v_keys := v_circle.keys;
    v_fronts := v_circle.fronts;
    WHILE cardinality(v_keys) > 0 AND v_left > 0 LOOP
      v_share := greatest(v_left / cardinality(v_keys), 1);
      v_more := '{}';
      FOR v_nth IN 1 .. cardinality(v_keys) LOOP
        EXIT WHEN v_left = 0;
        v_key := v_keys[v_nth];
        v_take := least(v_share, v_left);
        IF v_limits_keys THEN
          SELECT least(v_take, r.slots, r.rate) AS take, r.free_at INTO v_limits
            FROM key_room(v_room.definition, v_key, v_taken, v_recovered) r;
          v_take := v_limits.take;
          IF v_take = 0 THEN
            is_limited := true;
            IF v_limits.free_at IS NOT NULL THEN
              again_in_ms := least(again_in_ms, greatest(extract(epoch FROM v_limits.free_at - v_now) * 1000, 0) + 1);
            END IF;
            CONTINUE;
          END IF;
        END IF;
        v_found := first_in_line(p_queue, v_front.priority, v_key, p_app_version, p_names, workflow_ids, v_take,
                                 CASE WHEN NOT v_limits_keys THEN v_fronts[v_nth] END);
        CONTINUE WHEN v_found = '{}';
        v_served := v_key;
        workflow_ids := workflow_ids || v_found;
        v_taken := v_taken || array_fill(v_key, ARRAY[cardinality(v_found)]);
        v_left := v_left - cardinality(v_found);
        IF cardinality(v_found) = v_take THEN
          v_more := v_more || v_nth;
        END IF;
      END LOOP;
      v_fronts := ARRAY(SELECT v_fronts[m.nth] FROM unnest(v_more) WITH ORDINALITY AS m (nth, place) ORDER BY m.place);
      v_keys := ARRAY(SELECT v_keys[m.nth] FROM unnest(v_more) WITH ORDINALITY AS m (nth, place) ORDER BY m.place);
    END LOOP;
    has_more := cardinality(workflow_ids) = p_take;
    -- The room is used up, and there may be more of these keys.
    is_limited := is_limited OR v_left = 0;
    IF v_left > 0 AND NOT v_circle.is_whole THEN
      is_limited := true;
      is_soon := true;
      turn := jsonb_strip_nulls(jsonb_build_object(
        'key', v_start, 'priority', v_priority,
        'from', coalesce(v_circle.keys[cardinality(v_circle.keys)], p_turn ->> 'from')));
      EXIT;
    END IF;
  END LOOP;
END
$$;
