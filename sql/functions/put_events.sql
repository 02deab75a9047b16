-- A call of a workflow adds events, in the transaction that records it. p_events is a JSON array of {topic, key, payload}; key may
-- be null. To be called after the workflow's row was locked under the check.
CREATE OR REPLACE FUNCTION put_events(p_workflow_id text, p_seq integer, p_events json) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  INSERT INTO outbox_event (event_id, topic, event_key, payload, state, workflow_id, seq, due_at, added_at)
  SELECT outbox_event_id(i.nonce, p_seq, e.place::integer - 1), e.x ->> 'topic', e.x ->> 'key', e.x ->> 'payload',
         CASE WHEN e.x ->> 'key' IS NULL THEN 'ready' ELSE 'new' END, p_workflow_id, p_seq, t.now, t.now
    FROM json_array_elements(p_events) WITH ORDINALITY AS e (x, place)
   CROSS JOIN (SELECT clock() AS now) t
    JOIN workflow_input i ON i.workflow_id = p_workflow_id
   ORDER BY e.place
$$;
