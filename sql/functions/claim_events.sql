-- A relay takes events that are due: of each of p_topics as many as p_limits says. They are its own for p_lease_ms, under a token
-- that it shows when it settles them. The lease is the time at which they are due again, so one that nobody settles is taken
-- by the next relay. Every claim counts as an attempt.
--
-- At first, new events get their places. Lanes are found by hopping from one to the next, so that none with many events hides
-- the others; one that somebody else has locked keeps its new events for the next time.
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
  -- Lanes of one topic, and new events of one lane, that one claim looks at.
  c_lanes  CONSTANT integer := 500;
  c_events CONSTANT integer := 1000;
  v_now    timestamptz := clock();
  v_topic  text;
  v_key    text;
BEGIN
  FOREACH v_topic IN ARRAY p_topics LOOP
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
      SELECT l.event_key FROM lane l LIMIT c_lanes
    LOOP
      IF pg_try_advisory_xact_lock(lane_lock(v_topic, v_key)) THEN
        PERFORM advance_lane(v_topic, v_key, c_events);
      END IF;
    END LOOP;
  END LOOP;

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
