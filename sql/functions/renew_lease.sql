-- Makes a lease last for another p_ttl_ms from now on; p_ttl_ms 0 gives it up. False: somebody else has it, so it is lost for
-- good. A lease that has run out and that nobody took is renewed: its holder decides by its own clock whether it still trusts it.
--
-- Who gives it up is not its holder any more: a renewal that was under way at the same time, or was given up, and arrives behind it would
-- hold the lease for nobody.
CREATE OR REPLACE FUNCTION renew_lease(p_name text, p_holder uuid, p_ttl_ms bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '1s'
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  UPDATE named_lease l
     SET held_until = v_now + p_ttl_ms * interval '1 ms',
         holder = CASE WHEN p_ttl_ms = 0 THEN gen_random_uuid() ELSE l.holder END
   WHERE l.name = p_name AND l.holder = p_holder;
  RETURN FOUND;
END
$$;
