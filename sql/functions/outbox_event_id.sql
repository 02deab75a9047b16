-- The ID of the event number p_place (from 0) of a workflow's call: a UUID of version 8 (RFC 9562), made from a hash of what names it.
-- p_nonce is the workflow's, of its start: kept by rewind and continue-as-new, and another one for a fork and for a later
-- workflow of the same ID. So an event that a rewound step adds again has the ID that it had, and no other event has it.
CREATE OR REPLACE FUNCTION outbox_event_id(p_nonce uuid, p_seq integer, p_place integer) RETURNS uuid
LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT
AS $$
  SELECT overlay(overlay(h.digits PLACING '8' FROM 13 FOR 1)
                 PLACING substr('89ab', (get_byte(h.bytes, 8) & 3) + 1, 1) FROM 17 FOR 1)::uuid
    FROM (SELECT b.bytes, left(encode(b.bytes, 'hex'), 32) AS digits
            FROM (SELECT sha256(convert_to(concat_ws(' ', 'outbox', p_nonce, p_seq, p_place), 'UTF8')) AS bytes) b) h
$$;
