-- Sends one message to a workflow, from a trigger or from any language, in the caller's transaction. Answers whether this
-- call sent it; false: the workflow has a message with this idempotency key already, and nothing was written.
--
-- SQLSTATEs, each with a hint:
--   HF011  there is no such workflow
--   HF012  it has ended
--   22023  an argument is not of the documented form
CREATE OR REPLACE FUNCTION send_message(
  p_workflow_id text, p_topic text, p_message jsonb DEFAULT 'null', p_idempotency_key text DEFAULT NULL
)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_id      text := coalesce(p_idempotency_key, gen_random_uuid()::text);
  v_refused record;
BEGIN
  IF p_workflow_id IS NULL OR p_message IS NULL OR coalesce(octet_length(p_topic), 0) NOT BETWEEN 1 AND 255
     OR starts_with(p_topic, 'holdfast:') OR octet_length(v_id) NOT BETWEEN 1 AND 512 THEN
    RAISE EXCEPTION 'An argument of send_message is not of the documented form.'
      USING ERRCODE = '22023',
            HINT = 'p_topic has 1 to 255 bytes and does not begin with "holdfast:", p_idempotency_key has 1 to 512 bytes, p_message is JSON.';
  END IF;
  IF EXISTS (SELECT FROM message m WHERE m.workflow_id = p_workflow_id AND m.message_id = v_id) THEN
    RETURN false;
  END IF;
  SELECT s.* INTO v_refused
    FROM send_items(ARRAY[p_workflow_id], ARRAY[v_id], ARRAY[p_topic], ARRAY[p_message::text], NULL) s;
  CASE v_refused.answer
    WHEN 'missing' THEN
      RAISE EXCEPTION 'There is no workflow "%".', p_workflow_id
        USING ERRCODE = 'HF011', HINT = 'It never was, or has been deleted. Check the ID.';
    WHEN 'ended' THEN
      RAISE EXCEPTION 'Workflow "%" has ended: %.', p_workflow_id, v_refused.found_status
        USING ERRCODE = 'HF012', HINT = 'Nobody would receive the message. Resume or rewind the workflow first.';
    ELSE
      PERFORM pg_notify(current_schema() || '.message', json_build_array(p_workflow_id)::text);
  END CASE;
  RETURN true;
END
$$;
