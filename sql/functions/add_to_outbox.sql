-- Adds one event, from a trigger or from any language, in the caller's transaction. Returns its ID.
--
-- SQLSTATE, with a hint:
--   22023  an argument is not of the documented form
CREATE OR REPLACE FUNCTION add_to_outbox(p_topic text, p_payload jsonb DEFAULT 'null', p_key text DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_id uuid := gen_random_uuid();
BEGIN
  IF p_payload IS NULL OR coalesce(octet_length(p_topic), 0) NOT BETWEEN 1 AND 255 OR octet_length(p_key) NOT BETWEEN 1 AND 512
     OR octet_length(p_payload::text) > 1048576 THEN
    RAISE EXCEPTION 'An argument of add_to_outbox is not of the documented form.'
      USING ERRCODE = '22023',
            HINT = 'p_topic has 1 to 255 bytes, p_key has 1 to 512 bytes or is null, p_payload is JSON of at most 1 MiB.';
  END IF;
  PERFORM add_events_in_transaction(json_build_array(json_build_object(
    'eventId', v_id, 'topic', p_topic, 'key', p_key, 'payload', p_payload::text)));
  RETURN v_id;
END
$$;
