-- Sends messages inside the caller's own transaction: they are there exactly if that commits. p_items is a JSON array of
-- objects, a form that every client library can bind; for answers see send_items. Waits for whoever is just sending a message
-- of the same ID, and notifies in the same transaction: receivers are told when it commits.
CREATE OR REPLACE FUNCTION send_in_transaction(p_items json)
RETURNS TABLE (item integer, answer text, found_status text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_items record;
BEGIN
  SELECT array_agg(r.x ->> 'workflowId' ORDER BY r.place) AS workflow_ids,
         array_agg(r.x ->> 'messageId' ORDER BY r.place) AS message_ids,
         array_agg(r.x ->> 'topic' ORDER BY r.place) AS topics,
         array_agg(r.x ->> 'payload' ORDER BY r.place) AS payloads
    INTO v_items
    FROM json_array_elements(p_items) WITH ORDINALITY AS r (x, place);
  IF v_items.workflow_ids IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT s.* FROM send_items(v_items.workflow_ids, v_items.message_ids, v_items.topics, v_items.payloads, NULL) s;
  PERFORM pg_notify(current_schema() || '.message', json_build_array(r.workflow_id)::text)
     FROM (SELECT DISTINCT u.workflow_id FROM unnest(v_items.workflow_ids) AS u (workflow_id)) r;
END
$$;
