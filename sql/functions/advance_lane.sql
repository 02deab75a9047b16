-- Gives new events of a lane their place, and lets the first one be delivered if nothing is before it. To be called under the
-- lane's lock: then nobody else changes heads, and everything that was committed before is seen.
--
-- Why an event never overtakes one whose adding was committed before its own began: that one has a lower position, and whoever sees
-- the later sees the earlier. They are taken from 'new' in the order of their positions, and heads are taken from 'behind' in
-- the same order.
--
-- p_limit new events at most get their place in one call: a lane of a million must not hold up the others.
CREATE OR REPLACE FUNCTION advance_lane(p_topic text, p_key text, p_limit integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
BEGIN
  UPDATE outbox_event o SET state = 'behind'
    FROM (SELECT n.event_id FROM outbox_event n
           WHERE n.topic = p_topic AND n.event_key = p_key AND n.state = 'new'
           ORDER BY n.position LIMIT p_limit) f
   WHERE o.event_id = f.event_id;
  PERFORM FROM outbox_event o
    WHERE o.topic = p_topic AND o.event_key = p_key AND o.event_key IS NOT NULL AND o.state IN ('ready', 'dead');
  IF NOT FOUND THEN
    UPDATE outbox_event o SET state = 'ready', due_at = clock()
     WHERE o.event_id = (SELECT b.event_id FROM outbox_event b
                          WHERE b.topic = p_topic AND b.event_key = p_key AND b.state = 'behind'
                          ORDER BY b.position LIMIT 1);
  END IF;
END
$$;
