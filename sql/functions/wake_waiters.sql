-- Has the suspended workflows looked at again that wait for an outcome or an event of these. To be called in the transaction
-- that writes it, or has it never come, by a statement after the one that has locked the row of the workflow it belongs to: suspend_workflow
-- shares that lock before it looks, so either it sees what was written, or this sees that it waits.
CREATE OR REPLACE FUNCTION wake_waiters(p_target_ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO wakeup (wakeup_id, workflow_id)
  SELECT gen_random_uuid(), w.waiter_id FROM workflow_wait w WHERE w.target_id = ANY (p_target_ids);
  IF FOUND THEN
    PERFORM pg_notify(current_schema() || '.work', '');
  END IF;
END
$$;
