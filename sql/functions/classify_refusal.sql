-- Says why a write of an execution was refused: the failure table of docs/protocol.md, in its only place.
--
-- Called for items that neither took effect in this call nor carry a nonce that is already recorded, so "my commit
-- succeeded and the reply was lost" has been ruled out by the caller.
--
--   missing         there is no such workflow
--   lost            the token is gone or another's
--   locked          token and version are as expected, so somebody held the row lock: try again
--   nondeterminism  same owner, and this seq is recorded already by another write
--   conflict        same owner, but the version moved on: somebody wrote without taking ownership
CREATE OR REPLACE FUNCTION classify_refusal(
  p_workflow_id text, p_token uuid, p_version bigint, p_seq integer,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text
)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_token uuid;
BEGIN
  SELECT s.status, s.epoch, s.record_version, s.owner_token
    INTO found_status, found_epoch, found_version, v_token
    FROM workflow_status s WHERE s.workflow_id = p_workflow_id;
  IF NOT FOUND THEN
    answer := 'missing';
  ELSIF v_token IS DISTINCT FROM p_token THEN
    answer := 'lost';
  ELSIF found_version = p_version THEN
    answer := 'locked';
  ELSE
    SELECT r.kind || ' ' || r.name INTO found_detail
      FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq = p_seq;
    answer := CASE WHEN FOUND THEN 'nondeterminism' ELSE 'conflict' END;
  END IF;
END
$$;
