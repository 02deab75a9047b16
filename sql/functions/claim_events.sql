-- A relay takes events that are due: of each of p_topics as many as p_limits says. They are its own for p_lease_ms, under a token
-- that it shows when it settles them. The lease is the time at which they are due again, so one that nobody settles is taken
-- by the next relay. Every claim counts as an attempt.
--
-- At first, new events get their places. Lanes are found by hopping from one to the next, so that none with many events hides
-- the others; one that somebody else has locked keeps its new events for the next time. So do those that one claim has no room for:
-- it has to be over before who sent it gives it up, and each lane is a lock. The topics come in any order, so that each has its turn.
CREATE OR REPLACE FUNCTION claim_events(p_topics text[], p_limits integer[], p_lease_ms bigint)
RETURNS TABLE (
  event_id uuid, topic text, event_key text, payload text, token uuid, attempts integer, workflow_id text, added_at timestamptz
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  -- New events of one lane, and lanes of all topics together, that one claim looks at.
  c_events CONSTANT integer := 100;
  v_room   integer := 250;
  v_now    timestamptz;
  v_topic  text;
  v_key    text;
BEGIN
  IF pg_try_advisory_xact_lock_shared(all_lanes_lock()) THEN
    FOR v_topic IN SELECT t.topic FROM unnest(p_topics) AS t (topic) ORDER BY random() LOOP
      FOR v_key IN
        WITH RECURSIVE lane AS (
          (SELECT o.event_key FROM outbox_event o
            WHERE o.topic = v_topic AND o.state = 'new' ORDER BY o.event_key LIMIT 1)
          UNION ALL
          SELECT n.event_key
            FROM lane l
           CROSS JOIN LATERAL (SELECT o.event_key FROM outbox_event o
                                WHERE o.topic = v_topic AND o.event_key > l.event_key AND o.state = 'new'
                                ORDER BY o.event_key LIMIT 1) n
        )
        SELECT l.event_key FROM lane l LIMIT v_room
      LOOP
        v_room := v_room - 1;
        IF pg_try_advisory_xact_lock(lane_lock(v_topic, v_key)) THEN
          PERFORM advance_lane(v_topic, v_key, c_events);
        END IF;
      END LOOP;
    END LOOP;
  END IF;

  v_now := clock();
  FOR i IN 1 .. cardinality(p_topics) LOOP
    RETURN QUERY
    WITH due AS MATERIALIZED (
      SELECT o.event_id FROM outbox_event o
       WHERE o.topic = p_topics[i] AND o.state = 'ready' AND o.due_at <= v_now
       ORDER BY o.due_at LIMIT p_limits[i]
         FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE outbox_event o
       SET token = gen_random_uuid(), attempts = o.attempts + 1, due_at = v_now + p_lease_ms * interval '1 ms'
      FROM due d
     WHERE o.event_id = d.event_id
    RETURNING o.event_id, o.topic, o.event_key, o.payload, o.token, o.attempts, o.workflow_id, o.added_at;
  END LOOP;
END
$$;
