-- Puts messages into the boxes of workflows, in the caller's transaction, and wakes receivers that are unloaded. One array
-- element per message; p_sender is the workflow that sends, or null.
--
-- Returns one row per item that is not there when the call ends:
--   missing  there is no such workflow
--   ended    it has ended (found_status): nobody will receive it
-- An item whose ID the receiver has already is there, whatever it said: by an earlier try whose reply was lost, or because
-- the sender gave the same idempotency key again.
--
-- * FOR KEY SHARE keeps the receiver from being deleted meanwhile (delete_workflow locks it FOR UPDATE first), so that no
--   message is left of a workflow that is gone; checkpoints of the receiver go on beside it.
-- * A row lock is a write, which waits for the synchronous standbys. That a workflow is not there is only read, and so made
--   to wait: a primary that was replaced does not know what was started since.
-- * Rows are inserted in the order of the array: positions are the order of the calls.
CREATE OR REPLACE FUNCTION send_items(
  p_workflow_ids text[], p_message_ids text[], p_topics text[], p_payloads text[], p_sender text
)
RETURNS TABLE (item integer, answer text, found_status text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now      timestamptz := clock();
  v_accepted text[];
  v_reached  text[];
BEGIN
  SELECT array_agg(r.workflow_id) INTO v_accepted
    FROM (
      SELECT s.workflow_id, s.status FROM workflow_status s
       WHERE s.workflow_id = ANY (p_workflow_ids)
       ORDER BY s.workflow_id FOR KEY SHARE
    ) r
   WHERE r.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER');

  WITH sent AS (
    INSERT INTO message (workflow_id, message_id, topic, payload, sender, sent_at)
    SELECT r.workflow_id, r.message_id, r.topic, r.payload, p_sender, v_now
      FROM unnest(p_workflow_ids, p_message_ids, p_topics, p_payloads) WITH ORDINALITY
        AS r (workflow_id, message_id, topic, payload, place)
     WHERE r.workflow_id = ANY (v_accepted)
     ORDER BY r.place
    ON CONFLICT (workflow_id, message_id) DO NOTHING
    RETURNING workflow_id
  )
  SELECT array_agg(DISTINCT s.workflow_id) INTO v_reached FROM sent s;
  IF v_reached IS NOT NULL THEN
    PERFORM wake_up(v_reached);
  END IF;

  RETURN QUERY
  SELECT r.place::integer, CASE WHEN s.workflow_id IS NULL THEN 'missing' ELSE 'ended' END, s.status
    FROM unnest(p_workflow_ids, p_message_ids) WITH ORDINALITY AS r (workflow_id, message_id, place)
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
   WHERE NOT r.workflow_id = ANY (coalesce(v_accepted, '{}'))
     AND NOT EXISTS (SELECT FROM message m WHERE m.workflow_id = r.workflow_id AND m.message_id = r.message_id);
  IF FOUND THEN
    PERFORM await_standbys();
  END IF;
END
$$;
