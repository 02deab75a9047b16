-- Takes workflows over: those whose owner's lease has expired, those whose time has come, those given back, resumed or
-- enqueued. Every claim makes a new token and the next epoch, so whatever execution had the workflow before is fenced by its
-- next write. Two claims of one workflow are one: the row lock decides, and the loser skips it.
--
-- An executor claims only names it knows and only its own app version (or what has no record, since no execution has ever owned
-- it or since it continued as new, which then gets its version); and nothing at all once it has been superseded or its own lease has expired. A workflow over its attempt
-- limit becomes DEAD_LETTER instead, with p_dead_letter_error as its outcome. p_only restricts the claim to these IDs; null
-- means any.
--
-- Queues. A workflow PENDING or SUSPENDED holds a slot, so recovery and waking need none: they are refused by the limits that
-- speak of this executor or of a rate, and by no others. The line is served by pick_from_queue, queue by queue in turns.
--
-- When something waits in queues or for a moment, one more row comes, with workflow_id null and in report a JSON object:
--   turns        to be passed as p_turns the next time: whose turn it is
--   limited      something waits that limits keep back: ask again when a slot gets free
--   againInMs    ask again after this many milliseconds
--   soon         ask again soon, and later each time in vain: somebody else is just claiming, or not everything was looked at
--
-- In the row of a workflow that a schedule runs, report is a JSON object with schedule, its name, and scheduledMs, the tick in
-- milliseconds since 1970.
--
-- jit: executor has no index to look for leases by, and the cost that a disabled sequential scan is given makes the server
-- compile the query, for 120 ms at every claim.
CREATE OR REPLACE FUNCTION claim_work(
  p_executor_id text, p_incarnation bigint, p_app_version text, p_names text[], p_limit integer, p_only text[],
  p_dead_letter_error text, p_turns jsonb
)
RETURNS TABLE (
  workflow_id text, name text, instance text, token uuid, epoch bigint, record_version bigint, attempts integer,
  reason text, deadline_in_ms double precision, input text, first_seq integer, has_history boolean, report text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET jit = off SET enable_memoize = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  c_promoted CONSTANT integer := 1000;
  c_queues   CONSTANT integer := 100;
  c_turns    CONSTANT integer := 1000;
  -- Moments that are closer together than this are waited for together.
  c_soonest_ms CONSTANT double precision := 50;
  v_now       timestamptz := clock();
  v_recovered text[];
  v_due       text[];
  -- The next moment that something waits for.
  v_first_due timestamptz;
  v_ids       text[];
  v_dead      text[];
  v_taken     integer;
  v_queue     text;
  v_queues    text[];
  v_fronts    tid[];
  v_place     integer;
  -- Where the queues' next round begins.
  v_after     text;
  -- Queues of which this executor runs as many workflows as it may.
  v_full      text[] := '{}';
  v_left      integer;
  v_pick      record;
  v_room      record;
  v_keys      jsonb := coalesce(p_turns -> 'keys', '{}');
  v_limited   boolean := false;
  -- What the tokens of this claim begin with.
  v_token     text;
  v_soon      boolean := false;
  v_has_more  boolean := false;
  v_overflows boolean;
  v_again_ms  double precision;
BEGIN
  PERFORM FROM executor e
    WHERE e.executor_id = p_executor_id AND e.incarnation = p_incarnation AND e.lease_until > v_now;
  IF NOT FOUND THEN
    RETURN;
  END IF;

  -- Executor by executor, since a plain join may start from all rows that are owned: 200 ms with 100,000 of them and no
  -- expired lease, against 0.1 ms. OFFSET and, below, LATERAL with LIMIT leave the planner only this order.
  v_recovered := '{}';
  IF EXISTS (
    SELECT FROM executor e
     WHERE e.lease_until <= v_now
       AND EXISTS (SELECT FROM workflow_status s
                    WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING' OFFSET 0)
  ) THEN
    SELECT array_agg(c.workflow_id) INTO v_recovered FROM (
      SELECT r.workflow_id
        FROM executor e
       CROSS JOIN LATERAL (
         SELECT s.workflow_id
           FROM workflow_status s
           LEFT JOIN queue q ON q.name = s.queue
          WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
            AND s.name = ANY (p_names) AND s.app_version = p_app_version
            AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
            AND coalesce(q.executor_concurrency, q.rate_limit, q.key_rate_limit) IS NULL
          LIMIT p_limit
            FOR NO KEY UPDATE OF s SKIP LOCKED
       ) r
       WHERE e.lease_until <= v_now
       LIMIT p_limit
    ) c;
    v_recovered := coalesce(v_recovered, '{}');

    -- The others, of which limits may let through only some.
    FOR v_queue IN
      SELECT DISTINCT r.queue
        FROM executor e
       CROSS JOIN LATERAL (
         SELECT s.queue
           FROM workflow_status s JOIN queue q ON q.name = s.queue
          WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
            AND coalesce(q.executor_concurrency, q.rate_limit, q.key_rate_limit) IS NOT NULL
          -- Leaves the planner only this order, as above.
          OFFSET 0
       ) r
       WHERE e.lease_until <= v_now
    LOOP
      SELECT * INTO v_pick
        FROM recover_from_queue(v_queue, p_limit - cardinality(v_recovered), p_executor_id, p_incarnation, p_app_version,
                                p_names, p_only);
      v_recovered := v_recovered || v_pick.workflow_ids;
      v_limited := v_limited OR v_pick.is_limited;
      v_soon := v_soon OR v_pick.is_soon;
      v_again_ms := least(v_again_ms, v_pick.again_in_ms);
    END LOOP;
  END IF;

  v_left := p_limit - cardinality(v_recovered);
  v_due := '{}';
  SELECT s.wake_at INTO v_first_due
    FROM workflow_status s WHERE s.status IN ('DELAYED', 'SUSPENDED') ORDER BY s.wake_at LIMIT 1;
  IF v_first_due <= v_now THEN
    -- What is due in a queue gets in line.
    UPDATE workflow_status s
       SET status = 'ENQUEUED', wake_at = NULL, record_version = s.record_version + 1, updated_at = v_now
      FROM (SELECT d.workflow_id FROM workflow_status d
             WHERE d.status = 'DELAYED' AND d.wake_at <= v_now AND d.queue IS NOT NULL
               AND (p_only IS NULL OR d.workflow_id = ANY (p_only))
             ORDER BY d.wake_at LIMIT c_promoted FOR NO KEY UPDATE SKIP LOCKED) due
     WHERE s.workflow_id = due.workflow_id;

    LOOP
      SELECT v_due || array_agg(c.workflow_id) INTO v_due FROM (
        SELECT s.workflow_id
          FROM workflow_status s
         WHERE s.status IN ('DELAYED', 'SUSPENDED') AND s.wake_at <= v_now
           AND (s.status = 'SUSPENDED' OR s.queue IS NULL) AND (s.queue IS NULL OR s.queue <> ALL (v_full))
           AND s.name = ANY (p_names) AND (s.app_version = p_app_version OR s.any_version OR s.epoch = 0 AND s.forked_from IS NULL)
           AND (p_only IS NULL OR s.workflow_id = ANY (p_only)) AND s.workflow_id <> ALL (v_due)
         ORDER BY s.wake_at
         LIMIT v_left - cardinality(v_due)
           FOR NO KEY UPDATE OF s SKIP LOCKED
      ) c;
      -- What is woken has its slot, but not in this executor. What that has no room for is left asleep, for another one or for
      -- later; and what it lies in front of is looked for again.
      v_overflows := false;
      FOR v_pick IN
        SELECT s.queue, array_agg(s.workflow_id ORDER BY s.wake_at) AS workflow_ids
          FROM workflow_status s JOIN queue q ON q.name = s.queue
         WHERE s.workflow_id = ANY (v_due) AND q.executor_concurrency IS NOT NULL AND s.queue <> ALL (v_full)
         GROUP BY s.queue
      LOOP
        SELECT r.own - (SELECT count(*) FROM workflow_status s WHERE s.workflow_id = ANY (v_recovered) AND s.queue = v_pick.queue)
                 AS room, r.is_contended INTO v_room
          FROM queue_room(v_pick.queue, p_executor_id, p_incarnation) r;
        IF cardinality(v_pick.workflow_ids) > v_room.room THEN
          v_overflows := true;
          v_limited := true;
          v_soon := v_soon OR v_room.is_contended;
          v_full := v_full || v_pick.queue;
          v_due := ARRAY(SELECT d.workflow_id FROM unnest(v_due) AS d (workflow_id)
                          WHERE d.workflow_id <> ALL (v_pick.workflow_ids[greatest(v_room.room, 0) + 1:]));
        END IF;
      END LOOP;
      EXIT WHEN NOT v_overflows;
    END LOOP;
  END IF;

  v_left := v_left - cardinality(v_due);
  SELECT array_agg(c.workflow_id) INTO v_ids FROM (
    SELECT s.workflow_id
      FROM workflow_status s
     WHERE s.status = 'ENQUEUED' AND s.queue IS NULL
       AND s.name = ANY (p_names) AND (s.app_version = p_app_version OR s.any_version OR s.epoch = 0 AND s.forked_from IS NULL)
       AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
     ORDER BY s.created_at, s.workflow_id
     LIMIT v_left
       FOR NO KEY UPDATE OF s SKIP LOCKED
  ) c;
  v_left := v_left - coalesce(cardinality(v_ids), 0);
  v_ids := v_recovered || v_due || v_ids;

  IF p_only IS NULL THEN
    SELECT w.queues, w.fronts INTO v_queues, v_fronts FROM waiting_fronts(p_turns ->> 'queue', c_queues) w;
  ELSE
    v_queues := ARRAY(SELECT DISTINCT s.queue FROM workflow_status s
                       WHERE s.workflow_id = ANY (p_only) AND s.status = 'ENQUEUED' AND s.queue IS NOT NULL);
  END IF;
  -- Turns outlive claims that come to nothing, and those that look at other queues.
  IF (SELECT count(*) FROM jsonb_object_keys(v_keys)) > c_turns THEN
    v_keys := '{}';
  END IF;
  FOR v_place IN 1 .. cardinality(v_queues) LOOP
    v_queue := v_queues[v_place];
    IF v_left = 0 THEN
      v_limited := true;
      EXIT;
    END IF;
    SELECT * INTO v_pick
      FROM pick_from_queue(v_queue, ceil(v_left::numeric / (cardinality(v_queues) - v_place + 1))::integer, p_executor_id,
                           p_incarnation, p_app_version, p_names, p_only, v_keys -> v_queue, v_recovered, v_due, v_fronts[v_place]);
    v_ids := v_ids || v_pick.workflow_ids;
    v_left := v_left - cardinality(v_pick.workflow_ids);
    v_limited := v_limited OR v_pick.is_limited;
    v_soon := v_soon OR v_pick.is_soon;
    v_has_more := v_has_more OR v_pick.has_more;
    v_again_ms := least(v_again_ms, v_pick.again_in_ms);
    v_after := v_queue;
    IF v_pick.turn IS NOT NULL THEN
      v_keys := v_keys || jsonb_build_object(v_queue, v_pick.turn);
    END IF;
  END LOOP;
  IF cardinality(v_queues) < c_queues AND v_after = v_queues[cardinality(v_queues)] THEN
    -- All have had their turn: another one begins the next round.
    v_after := v_queues[1];
  ELSIF v_left > 0 THEN
    -- There may be more queues than were looked at.
    v_soon := v_soon OR cardinality(v_queues) = c_queues;
  END IF;
  -- Some queues left more of their shares than others could use of them.
  IF v_has_more AND v_left > 0 THEN
    v_again_ms := 0;
  END IF;
  IF v_first_due <= v_now THEN
    SELECT s.wake_at INTO v_first_due
      FROM workflow_status s WHERE s.status IN ('DELAYED', 'SUSPENDED') AND s.wake_at > v_now ORDER BY s.wake_at LIMIT 1;
  END IF;
  IF p_only IS NULL AND v_first_due IS NOT NULL THEN
    v_again_ms := least(v_again_ms, greatest(c_soonest_ms, extract(epoch FROM v_first_due - v_now) * 1000));
  END IF;
  IF v_limited OR v_soon OR v_again_ms IS NOT NULL OR cardinality(v_queues) > 0 THEN
    RETURN QUERY
    SELECT NULL::text, NULL::text, NULL::text, NULL::uuid, NULL::bigint, NULL::bigint, NULL::integer, NULL::text,
           NULL::double precision, NULL::text, NULL::integer, NULL::boolean,
           json_build_object('limited', v_limited, 'againInMs', v_again_ms, 'soon', v_soon, 'turns', json_build_object(
             'queue', coalesce(v_after, p_turns ->> 'queue'), 'keys', v_keys))::text;
  END IF;
  IF cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;

  IF cardinality(v_recovered) > 0 THEN
    PERFORM end_ownership(v_recovered, 'taken over', NULL);
  END IF;
  IF cardinality(v_due) > 0 THEN
    DELETE FROM workflow_wait w WHERE w.waiter_id = ANY (v_due);
  END IF;

  -- A token is random for the claim, and numbered within it: a random number of its own costs 2.5 us a workflow, of 30.
  v_token := left(gen_random_uuid()::text, 24);
  RETURN QUERY
  WITH taken AS (
    UPDATE workflow_status s
       SET status = 'PENDING', owner_token = (v_token || lpad(to_hex(r.place), 12, '0'))::uuid, epoch = s.epoch + 1,
           app_version = p_app_version, any_version = false, attention = NULL, attention_detail = NULL,
           record_version = s.record_version + 1, attempts = s.attempts + 1, executor_id = p_executor_id,
           incarnation = p_incarnation, wake_at = NULL, updated_at = v_now, started_at = coalesce(s.started_at, v_now),
           deadline = coalesce(s.deadline, v_now + s.timeout_ms * interval '1 ms'), owned_at = v_now,
           owned_reason = CASE
             WHEN s.workflow_id = ANY (v_recovered) THEN 'recovered'
             -- With a fresh budget: by the control operation that came after the last ownership, or by continuing as new.
             WHEN s.attempts = 0 AND s.epoch > 0 AND s.workflow_id <> ALL (v_due) AND EXISTS (
               SELECT FROM admin_audit a
                WHERE a.workflow_id = s.workflow_id AND a.verb IN ('resume', 'rewind')
                  AND a.acted_at >= (SELECT max(o.owned_at) FROM ended_ownership o WHERE o.workflow_id = s.workflow_id)
             ) THEN 'resumed'
             ELSE 'claimed' END
      -- = ANY (ARRAY[..]): see checkpoint_batch.
      FROM generate_series(1, cardinality(v_ids)) AS r (place)
     WHERE s.workflow_id = ANY (ARRAY[v_ids[r.place]]) AND s.attempts < s.max_attempts
    -- What is answered, and no more: all of the row's columns would be copied.
    RETURNING s.workflow_id, s.name, s.instance, s.owner_token, s.epoch, s.record_version, s.attempts, s.owned_reason,
              s.deadline, s.first_seq, s.forked_from, s.schedule, s.scheduled_at
  )
  SELECT t.workflow_id, t.name, t.instance, t.owner_token, t.epoch, t.record_version, t.attempts,
         t.owned_reason,
         (extract(epoch FROM t.deadline - v_now) * 1000)::double precision,
         (SELECT i.input FROM workflow_input i WHERE i.workflow_id = t.workflow_id), t.first_seq,
         t.epoch > 1 OR t.forked_from IS NOT NULL,
         CASE WHEN t.schedule IS NOT NULL THEN json_build_object('schedule', t.schedule, 'scheduledMs',
           (extract(epoch FROM t.scheduled_at) * 1000)::double precision)::text END
    FROM taken t;
  GET DIAGNOSTICS v_taken = ROW_COUNT;

  -- Asked once: each start would look for its queue, twice.
  IF cardinality(v_recovered) > 0 OR EXISTS (
    SELECT FROM queue q WHERE q.name = ANY (v_queues) AND coalesce(q.rate_limit, q.key_rate_limit) IS NOT NULL)
  THEN
    WITH taken AS MATERIALIZED (
      SELECT s.queue, s.partition_key, s.workflow_id <> ALL (v_due) AS is_start,
             greatest(q.rate_period_ms, q.key_rate_period_ms) AS period_ms
        FROM workflow_status s
        JOIN queue q ON q.name = s.queue
       WHERE s.workflow_id = ANY (v_ids) AND s.status = 'PENDING' AND s.owned_at = v_now
         AND coalesce(q.rate_limit, q.key_rate_limit) IS NOT NULL
    ), logged AS (
      INSERT INTO queue_start (start_id, queue, partition_key, started_at)
      -- As late as possible: a start that is counted too early leaves its window too early.
      SELECT gen_random_uuid(), t.queue, t.partition_key, clock() FROM taken t WHERE t.is_start
    )
    DELETE FROM queue_start o
     USING (SELECT DISTINCT t.queue, t.period_ms FROM taken t) q
     WHERE o.queue = q.queue AND o.started_at <= v_now - q.period_ms * interval '1 ms';
  END IF;

  -- The others are over their limits.
  IF v_taken < cardinality(v_ids) THEN
    WITH buried AS (
      UPDATE workflow_status s
         SET status = 'DEAD_LETTER', owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
             completed_at = v_now, wake_at = NULL, attention = 'DEAD_LETTER',
             attention_detail = format('%s of %s attempts used', s.attempts, s.max_attempts)
        FROM unnest(v_ids) AS r (workflow_id)
       WHERE s.workflow_id = r.workflow_id AND s.owned_at IS NULL
      RETURNING s.workflow_id, s.epoch
    ), recorded AS (
      INSERT INTO workflow_outcome (workflow_id, status, error, epoch, nonce, recorded_at)
      SELECT b.workflow_id, 'DEAD_LETTER', p_dead_letter_error, b.epoch, gen_random_uuid(), v_now FROM buried b
      RETURNING workflow_outcome.workflow_id
    )
    SELECT array_agg(d.workflow_id) INTO v_dead FROM recorded d;
    IF v_dead IS NOT NULL THEN
      PERFORM wake_waiters(v_dead);
    END IF;
  END IF;
END
$$;
