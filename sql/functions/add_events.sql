-- Adds events from outside of workflows. p_items is a JSON array of {eventId, topic, key, payload}; an event that is there already,
-- by an earlier try whose reply was lost, is left alone.
CREATE OR REPLACE FUNCTION add_events(p_items json) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
AS $$
  INSERT INTO outbox_event (event_id, topic, event_key, payload, state, due_at, added_at)
  SELECT (e.x ->> 'eventId')::uuid, e.x ->> 'topic', e.x ->> 'key', e.x ->> 'payload',
         CASE WHEN e.x ->> 'key' IS NULL THEN 'ready' ELSE 'new' END, t.now, t.now
    FROM json_array_elements(p_items) WITH ORDINALITY AS e (x, place)
   CROSS JOIN (SELECT clock() AS now) t
   ORDER BY e.place
  ON CONFLICT (event_id) DO NOTHING
$$;
