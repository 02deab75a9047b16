-- Takes back what calls of a workflow from number p_from_seq on have added and what is not delivered yet, the dead included. What is
-- just being delivered is taken back, too: its relay finds nothing to settle.
CREATE OR REPLACE FUNCTION retract_events(p_workflow_id text, p_from_seq integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  c_events CONSTANT integer := 100;
  -- Lanes that are locked one by one; of more, all.
  c_locks  CONSTANT integer := 250;
  v_lanes  record;
BEGIN
  SELECT array_agg(l.topic) AS topics, array_agg(l.event_key) AS keys INTO v_lanes
    FROM (SELECT DISTINCT o.topic, o.event_key FROM outbox_event o
           WHERE o.workflow_id = p_workflow_id AND o.seq >= p_from_seq AND o.event_key IS NOT NULL) l;
  IF cardinality(v_lanes.topics) > c_locks THEN
    PERFORM pg_advisory_xact_lock(all_lanes_lock());
  ELSE
    PERFORM pg_advisory_xact_lock_shared(all_lanes_lock());
    PERFORM pg_advisory_xact_lock(l.lane)
       FROM (SELECT DISTINCT lane_lock(u.topic, u.event_key) AS lane
               FROM unnest(v_lanes.topics, v_lanes.keys) AS u (topic, event_key) ORDER BY 1) l;
  END IF;
  DELETE FROM outbox_event o WHERE o.workflow_id = p_workflow_id AND o.seq >= p_from_seq;
  PERFORM advance_lane(u.topic, u.event_key, c_events) FROM unnest(v_lanes.topics, v_lanes.keys) AS u (topic, event_key);
END
$$;
