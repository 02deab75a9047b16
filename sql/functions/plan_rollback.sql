-- The execution that rolls a workflow back records what it is going to run, before it runs any of it: one intent for each
-- compensation, so that a later execution knows whether its code comes to the same, and people see what is still to be done.
-- p_plan is a JSON list of {"seq", "name", "undoes"}. What is recorded already (a rewind may have left the beginning) stays.
--
-- answer is null when recorded, by this call or by an earlier one whose reply was lost; else see classify_refusal. reply is not used.
CREATE OR REPLACE FUNCTION plan_rollback(
  p_workflow_id text, p_token uuid, p_version bigint, p_nonce uuid, p_plan text,
  OUT answer text, OUT found_status text, OUT found_epoch bigint, OUT found_version bigint, OUT found_detail text,
  OUT reply text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz := clock();
  v_epoch bigint;
BEGIN
  SELECT s.epoch INTO v_epoch FROM workflow_status s
    WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token AND s.record_version = p_version
      FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    -- One statement, one snapshot: see checkpoint_one.
    SELECT c.* INTO answer, found_status, found_epoch, found_version, found_detail
      FROM classify_refusal(p_workflow_id, p_token, p_version, NULL) c
     WHERE NOT EXISTS (SELECT FROM step_intent i WHERE i.workflow_id = p_workflow_id AND i.nonce = p_nonce);
    RETURN;
  END IF;

  UPDATE workflow_status s SET record_version = p_version + 1, updated_at = v_now WHERE s.workflow_id = p_workflow_id;
  INSERT INTO step_intent (workflow_id, seq, name, kind, undoes, record_version, epoch, nonce, recorded_at)
  SELECT p_workflow_id, e.seq, e.name, 'compensation', e.undoes, p_version + 1, v_epoch, p_nonce, v_now
    FROM jsonb_to_recordset(p_plan::jsonb) AS e (seq integer, name text, undoes integer)
  ON CONFLICT (workflow_id, seq) DO NOTHING;
END
$$;
