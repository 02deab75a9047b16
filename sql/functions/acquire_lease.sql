-- Takes a lease if nobody holds it, by the database's clock, and makes the next token. p_holder is random and the same for every
-- try of one acquisition: a try whose reply was lost gets the same token again.
--
-- Not acquired: token is null, held_by says who has it, and remaining_ms how long it lasts if it is not renewed.
--
-- The clock is read before the row can be waited for, so an answer that took long errs on the side of the holder.
CREATE OR REPLACE FUNCTION acquire_lease(
  p_name text, p_holder uuid, p_held_by text, p_ttl_ms bigint,
  OUT token bigint, OUT held_by text, OUT remaining_ms double precision
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
  v_now   timestamptz := clock();
  v_until timestamptz := v_now + p_ttl_ms * interval '1 ms';
BEGIN
  INSERT INTO named_lease AS l (name, token, holder, held_by, acquired_at, held_until)
  VALUES (p_name, 1, p_holder, p_held_by, v_now, v_until)
  ON CONFLICT (name) DO UPDATE
     SET token = CASE WHEN l.holder = p_holder THEN l.token ELSE l.token + 1 END,
         holder = p_holder, held_by = p_held_by, held_until = v_until,
         acquired_at = CASE WHEN l.holder = p_holder THEN l.acquired_at ELSE v_now END
   WHERE l.held_until <= v_now OR l.holder = p_holder
  RETURNING l.token, l.held_by INTO acquire_lease.token, acquire_lease.held_by;
  IF NOT FOUND THEN
    SELECT l.held_by, greatest(extract(epoch FROM l.held_until - v_now) * 1000, 0)
      INTO acquire_lease.held_by, acquire_lease.remaining_ms
      FROM named_lease l WHERE l.name = p_name;
  END IF;
END
$$;
