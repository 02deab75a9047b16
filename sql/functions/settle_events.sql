-- A relay says what came of events that it has claimed, one array element each. Only under their tokens: of one that somebody else has
-- claimed since, or that is gone, nothing is changed, and its position is returned.
--
--   delivered  the event goes, and the next of its lane is delivered
--   retry      is due again in p_delays_ms
--   released   is due at once, and this was no attempt
--   dead       waits for a person (p_reasons), and everything behind it with it
--
-- Lanes are locked before rows, and in one order: two of these, and whoever takes events away, cannot deadlock.
CREATE OR REPLACE FUNCTION settle_events(
  p_event_ids uuid[], p_tokens uuid[], p_outcomes text[], p_delays_ms bigint[], p_reasons text[], p_errors text[]
)
RETURNS TABLE (item integer)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  -- New events of a lane that get their place with one delivery.
  c_events CONSTANT integer := 100;
  v_now     timestamptz := clock();
  v_settled uuid[];
  v_ended   uuid[];
  v_lane    record;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(all_lanes_lock());
  PERFORM pg_advisory_xact_lock(l.lane)
     FROM (SELECT DISTINCT lane_lock(o.topic, o.event_key) AS lane
             FROM unnest(p_event_ids, p_outcomes) AS r (event_id, outcome)
             JOIN outbox_event o ON o.event_id = r.event_id
            WHERE r.outcome = 'delivered' AND o.event_key IS NOT NULL
            ORDER BY 1) l;

  WITH settled AS (
    UPDATE outbox_event o
       SET state = CASE r.outcome WHEN 'dead' THEN 'dead' ELSE 'ready' END,
           due_at = v_now + CASE r.outcome WHEN 'retry' THEN r.delay_ms ELSE 0 END * interval '1 ms',
           attempts = o.attempts - CASE r.outcome WHEN 'released' THEN 1 ELSE 0 END,
           died_at = CASE r.outcome WHEN 'dead' THEN v_now END,
           reason = CASE r.outcome WHEN 'dead' THEN r.reason END,
           error = coalesce(r.error, o.error), token = NULL
      FROM unnest(p_event_ids, p_tokens, p_outcomes, p_delays_ms, p_reasons, p_errors)
        AS r (event_id, token, outcome, delay_ms, reason, error)
     WHERE o.event_id = r.event_id AND o.token = r.token AND r.outcome <> 'delivered'
    RETURNING o.event_id
  )
  SELECT coalesce(array_agg(s.event_id), '{}') INTO v_settled FROM settled s;

  FOR v_lane IN
    DELETE FROM outbox_event o
     USING unnest(p_event_ids, p_tokens, p_outcomes) AS r (event_id, token, outcome)
     WHERE o.event_id = r.event_id AND o.token = r.token AND r.outcome = 'delivered'
    RETURNING o.event_id, o.topic, o.event_key
  LOOP
    v_ended := v_ended || v_lane.event_id;
    IF v_lane.event_key IS NOT NULL THEN
      PERFORM advance_lane(v_lane.topic, v_lane.event_key, c_events);
    END IF;
  END LOOP;

  RETURN QUERY
  SELECT r.position::integer FROM unnest(p_event_ids) WITH ORDINALITY AS r (event_id, position)
   WHERE r.event_id <> ALL (v_settled) AND r.event_id <> ALL (coalesce(v_ended, '{}'));
END
$$;
