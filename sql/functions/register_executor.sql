-- Registers an executor and returns its incarnation, which is greater than that of any earlier process of the same ID.
-- The earlier ones lose their leases at once: what they own can be claimed, and they learn it at their next heartbeat.
--
-- p_nonce is the same for every try of one registration. One whose reply was lost is answered as it was the first time; and one that
-- was given up on its way and arrives late, behind the try that was answered, does not take the lease from the process that sent both.
-- The lease is left as it is: whoever asked counts from before the first try.
CREATE OR REPLACE FUNCTION register_executor(
  p_executor_id text, p_app_version text, p_lease_ms bigint, p_host text, p_process_id integer, p_nonce uuid
)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_now         timestamptz := clock();
  v_incarnation bigint;
BEGIN
  -- Two processes that register one ID at once must not both become the newest.
  PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '.executor.' || p_executor_id, 0));
  SELECT e.incarnation INTO v_incarnation FROM executor e WHERE e.executor_id = p_executor_id AND e.nonce = p_nonce;
  IF FOUND THEN
    RETURN v_incarnation;
  END IF;
  -- An executor whose row was cleared away may have come back (a laptop that slept for days) and started workflows before
  -- its next heartbeat. Without a row, nobody would ever find their owner's lease expired. Only for rows that are not there, and
  -- before any row is held: ON CONFLICT alone waits for whoever has written the row that it finds, and two registrations that
  -- each hold their own row would wait for each other.
  -- A row that somebody is just clearing away is waited for, and is gone then. Nobody waits for this lock: whoever renews a lease, or
  -- ends it, does not change the key, and whoever clears away leaves out what is locked.
  PERFORM FROM executor e
    WHERE e.lease_until < v_now
      AND EXISTS (SELECT FROM workflow_status s
                   WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING')
      FOR KEY SHARE OF e;
  INSERT INTO executor (executor_id, incarnation, app_version, host, process_id, registered_at, heartbeat_at, lease_until)
  SELECT DISTINCT s.executor_id, s.incarnation, '', '', 0, v_now, v_now, v_now
    FROM workflow_status s
   WHERE s.status = 'PENDING'
     AND NOT EXISTS (SELECT FROM executor e WHERE e.executor_id = s.executor_id AND e.incarnation = s.incarnation)
   ORDER BY s.executor_id, s.incarnation
  ON CONFLICT (executor_id, incarnation) DO NOTHING;
  -- Also what is over: a renewal that is under way would begin it again, and is waited for here.
  UPDATE executor e SET lease_until = least(e.lease_until, v_now) WHERE e.executor_id = p_executor_id;
  -- Somebody else's registration may be filling in the very row of this ID, seen by nobody yet.
  LOOP
    INSERT INTO executor (executor_id, incarnation, app_version, host, process_id, registered_at, heartbeat_at, lease_until, nonce)
    SELECT p_executor_id, coalesce(max(e.incarnation), 0) + 1, p_app_version, p_host, p_process_id, v_now, v_now,
           v_now + p_lease_ms * interval '1 ms', p_nonce
      FROM executor e WHERE e.executor_id = p_executor_id
    ON CONFLICT (executor_id, incarnation) DO NOTHING
    RETURNING incarnation INTO v_incarnation;
    EXIT WHEN FOUND;
  END LOOP;
  -- Rows of processes long gone, once nothing refers to them. The day covers a start that was under way when its executor
  -- left. An ID's newest row is kept for a week: without it the next process would begin at incarnation 1 again, and be
  -- taken for the same one by a process that was only frozen. A row that somebody holds stays until the next registration.
  DELETE FROM executor d USING (
    SELECT e.executor_id, e.incarnation
      FROM executor e
     WHERE e.lease_until < v_now - CASE WHEN EXISTS (SELECT FROM executor n WHERE n.executor_id = e.executor_id
                                                        AND n.incarnation > e.incarnation)
                                        THEN interval '1 day' ELSE interval '7 days' END
       AND NOT EXISTS (SELECT FROM workflow_status s
                        WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING')
       FOR UPDATE OF e SKIP LOCKED
  ) gone
   WHERE d.executor_id = gone.executor_id AND d.incarnation = gone.incarnation;
  RETURN v_incarnation;
END
$$;

-- Without a nonce: for libraries below schema version 20, and for other languages. Each call is a registration of its own.
CREATE OR REPLACE FUNCTION register_executor(
  p_executor_id text, p_app_version text, p_lease_ms bigint, p_host text, p_process_id integer
)
RETURNS bigint
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
AS $$
  SELECT register_executor(p_executor_id, p_app_version, p_lease_ms, p_host, p_process_id, NULL)
$$;
