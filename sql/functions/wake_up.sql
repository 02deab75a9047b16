-- Has these workflows looked at again: whoever of them is suspended is claimed. To be called in the transaction of what they
-- may wait for (a message, say), after it was written. See drain_wakeups for why this loses nothing.
CREATE OR REPLACE FUNCTION wake_up(p_workflow_ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO wakeup (wakeup_id, workflow_id)
  SELECT gen_random_uuid(), r.workflow_id FROM unnest(p_workflow_ids) AS r (workflow_id);
  -- A hint, so it may be judged by what is seen; one that runs has its own way of being told.
  PERFORM FROM workflow_status s WHERE s.workflow_id = ANY (p_workflow_ids) AND s.status = 'SUSPENDED';
  IF FOUND THEN
    PERFORM pg_notify(current_schema() || '.work', '');
  END IF;
END
$$;
