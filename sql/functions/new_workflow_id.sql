-- A UUIDv7 (RFC 9562) as text: sorts by time, so that new rows land together in the index. A random UUID with the time in its
-- first 48 bits; version 4 becomes 7 by setting two bits.
CREATE OR REPLACE FUNCTION new_workflow_id() RETURNS text
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
AS $$
  SELECT encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
              placing substring(int8send((extract(epoch FROM clock()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid::text
$$;
