-- Extends an executor's lease. Never touches workflow_status.
--   renewed       the lease runs p_lease_ms from now
--   superseded    a newer incarnation of this executor ID has registered: stop
--   unregistered  the row is gone: register again
-- A lease that has expired without a successor is renewed: what was claimed meanwhile has another token and stays lost;
-- what was not is still owned, and need not run twice for a slow moment of the database.
CREATE OR REPLACE FUNCTION heartbeat(p_executor_id text, p_incarnation bigint, p_lease_ms bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  -- Locked before looking for a successor: a registration ends the leases of its predecessors, and one that is under way
  -- would otherwise find its work undone by a renewal that had not seen it yet.
  PERFORM FROM executor e WHERE e.executor_id = p_executor_id AND e.incarnation = p_incarnation FOR NO KEY UPDATE;
  PERFORM FROM executor e WHERE e.executor_id = p_executor_id AND e.incarnation > p_incarnation;
  IF FOUND THEN
    RETURN 'superseded';
  END IF;
  UPDATE executor e SET heartbeat_at = v_now, lease_until = v_now + p_lease_ms * interval '1 ms'
   WHERE e.executor_id = p_executor_id AND e.incarnation = p_incarnation;
  RETURN CASE WHEN FOUND THEN 'renewed' ELSE 'unregistered' END;
END
$$;
