-- For the resource that a token protects: accepts the token if no higher one was accepted before, and keeps it. To be called in
-- the transaction that writes the resource: the fence's row stays locked until that ends, so an older token cannot slip in
-- between, and a transaction that is rolled back has accepted nothing. The same token may come any number of times.
--
-- SQLSTATEs, each with a hint:
--   HF010  a higher token was accepted before (in DETAIL)
--   22023  an argument is not of the documented form
CREATE OR REPLACE FUNCTION accept_fence(p_resource text, p_token bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_highest bigint;
BEGIN
  IF p_resource IS NULL OR octet_length(p_resource) NOT BETWEEN 1 AND 512 OR p_token IS NULL OR p_token < 0 THEN
    RAISE EXCEPTION 'An argument of accept_fence is not of the documented form.'
      USING ERRCODE = '22023', HINT = 'p_resource has 1 to 512 bytes, and p_token is not negative.';
  END IF;
  INSERT INTO fence AS f (resource, token, accepted_at) VALUES (p_resource, p_token, clock())
  ON CONFLICT (resource) DO UPDATE SET token = p_token, accepted_at = excluded.accepted_at WHERE f.token <= p_token;
  IF NOT FOUND THEN
    SELECT f.token INTO v_highest FROM fence f WHERE f.resource = p_resource;
    RAISE EXCEPTION 'The fence of "%" has accepted a higher token.', p_resource
      USING ERRCODE = 'HF010', DETAIL = v_highest::text,
            HINT = 'Another holder has taken over: stop, and write nothing more.';
  END IF;
END
$$;
