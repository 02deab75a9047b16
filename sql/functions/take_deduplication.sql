-- Takes a deduplication ID for a workflow that is about to be enqueued in this transaction. holder is null when the workflow
-- has it now (took: it had not before), else the ID of the workflow that holds it. Waits for a transaction that is just
-- taking it.
--
-- An ID is free when its time has passed or, without one, when its workflow is terminal or gone. That is judged by a
-- statement of its own once the row is locked: the statement that waits for the lock still sees the time before the wait,
-- in which the holder that has just committed is not there yet.
CREATE OR REPLACE FUNCTION take_deduplication(
  p_queue text, p_deduplication_id text, p_workflow_id text, p_held_until timestamptz,
  OUT holder text, OUT took boolean
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
DECLARE
  v_now  timestamptz := clock();
  v_held queue_deduplication%ROWTYPE;
BEGIN
  LOOP
    INSERT INTO queue_deduplication (queue, deduplication_id, workflow_id, held_until, checked_at)
    VALUES (p_queue, p_deduplication_id, p_workflow_id, p_held_until, v_now)
    ON CONFLICT (queue, deduplication_id) DO NOTHING;
    took := FOUND;
    IF took THEN
      RETURN;
    END IF;
    SELECT * INTO v_held FROM queue_deduplication d
     WHERE d.queue = p_queue AND d.deduplication_id = p_deduplication_id FOR NO KEY UPDATE;
    -- Cleared away since the insert met it.
    CONTINUE WHEN NOT FOUND;
    IF v_held.workflow_id = p_workflow_id THEN
      RETURN;
    END IF;
    IF coalesce(v_held.held_until > v_now, EXISTS (
         SELECT FROM workflow_status s
          WHERE s.workflow_id = v_held.workflow_id
            AND s.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'))) THEN
      holder := v_held.workflow_id;
      RETURN;
    END IF;
    UPDATE queue_deduplication d
       SET workflow_id = p_workflow_id, held_until = p_held_until, checked_at = v_now
     WHERE d.queue = p_queue AND d.deduplication_id = p_deduplication_id;
    took := true;
    RETURN;
  END LOOP;
END
$$;
