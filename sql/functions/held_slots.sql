-- How many workflows hold a slot of a queue; counting stops at p_limit.
--
-- Those that sleep, and then executor by executor what they run, since an index of its own for this would have to be written at
-- every claim. The owners are taken from the rows themselves: a slot is held whether or not its executor is known any more.
CREATE OR REPLACE FUNCTION held_slots(p_queue text, p_limit integer) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off
AS $$
DECLARE
  v_held        integer;
  v_executor_id text := '';
  v_incarnation bigint := 0;
BEGIN
  SELECT count(*) INTO v_held
    FROM (SELECT FROM workflow_status s WHERE s.queue = p_queue AND s.status = 'SUSPENDED' LIMIT p_limit) asleep;
  WHILE v_held < p_limit LOOP
    SELECT s.executor_id, s.incarnation INTO v_executor_id, v_incarnation
      FROM workflow_status s
     WHERE s.status = 'PENDING' AND (s.executor_id, s.incarnation) > (v_executor_id, v_incarnation)
     ORDER BY s.executor_id, s.incarnation
     LIMIT 1;
    EXIT WHEN NOT FOUND;
    SELECT v_held + count(*) INTO v_held
      FROM (SELECT FROM workflow_status s
             WHERE s.executor_id = v_executor_id AND s.incarnation = v_incarnation AND s.queue = p_queue AND s.status = 'PENDING'
             LIMIT p_limit - v_held) running;
  END LOOP;
  RETURN v_held;
END
$$;
