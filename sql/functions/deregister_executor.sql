-- An executor leaves: whatever it still owns can be claimed at once. The row stays, since a start that is under way may
-- still commit under it; register_executor clears old rows away. The others are told to look.
CREATE OR REPLACE FUNCTION deregister_executor(p_executor_id text, p_incarnation bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE executor SET lease_until = least(lease_until, clock())
   WHERE executor_id = p_executor_id AND incarnation = p_incarnation;
  PERFORM pg_notify(current_schema() || '.work', '');
END
$$;
