-- Finds the workflow that the calls of one debounce key go to, or makes that the one that is about to be enqueued in this
-- transaction. holder is null when it is (took: it was another one before, or none).
--
-- Calls go to one workflow as long as it waits and no execution has owned it, and is_open is true then: its row is locked, so
-- that it is not claimed before this transaction ends. A call whose reply was lost finds its own nonce, and its workflow
-- also when that has started meanwhile.
--
-- first_at: when the first call for this workflow came.
CREATE OR REPLACE FUNCTION take_debounce(
  p_queue text, p_name text, p_key text, p_workflow_id text, p_nonce uuid,
  OUT holder text, OUT is_open boolean, OUT took boolean, OUT first_at timestamptz
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now  timestamptz := clock();
  v_held queue_debounce%ROWTYPE;
BEGIN
  LOOP
    INSERT INTO queue_debounce (queue, name, debounce_key, workflow_id, first_at, checked_at)
    VALUES (p_queue, p_name, p_key, p_workflow_id, v_now, v_now)
    ON CONFLICT (queue, name, debounce_key) DO NOTHING;
    took := FOUND;
    IF took THEN
      RETURN;
    END IF;
    SELECT * INTO v_held FROM queue_debounce d
     WHERE d.queue = p_queue AND d.name = p_name AND d.debounce_key = p_key FOR NO KEY UPDATE;
    -- Cleared away since the insert met it.
    CONTINUE WHEN NOT FOUND;
    first_at := v_held.first_at;
    -- Waits for a claim that is just taking it.
    PERFORM FROM workflow_status s
     WHERE s.workflow_id = v_held.workflow_id AND s.status IN ('DELAYED', 'ENQUEUED') AND s.epoch = 0
       FOR NO KEY UPDATE;
    is_open := FOUND;
    IF EXISTS (SELECT FROM workflow_input i WHERE i.workflow_id = v_held.workflow_id AND i.nonce = p_nonce) THEN
      holder := v_held.workflow_id;
      is_open := false;
      RETURN;
    END IF;
    IF is_open THEN
      holder := v_held.workflow_id;
      RETURN;
    END IF;
    UPDATE queue_debounce d SET workflow_id = p_workflow_id, first_at = v_now, checked_at = v_now
     WHERE d.queue = p_queue AND d.name = p_name AND d.debounce_key = p_key;
    took := true;
    RETURN;
  END LOOP;
END
$$;
