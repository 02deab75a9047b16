-- Takes back what a workflow's streams got from calls that are no longer on record: those of removed steps, and what steps
-- without a result had written so far. Entries of earlier runs (continue-as-new), of which there is no record, stay. What is
-- left moves together, since offsets have no gap. Part of rewind_workflow.
CREATE OR REPLACE FUNCTION retract_stream_entries(p_workflow_id text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_stream text;
BEGIN
  DELETE FROM stream_entry e
   WHERE e.workflow_id = p_workflow_id
     AND e.seq >= (SELECT s.first_seq FROM workflow_status s WHERE s.workflow_id = p_workflow_id)
     AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = e.workflow_id AND r.seq = e.seq);
  FOR v_stream IN
    SELECT e.stream FROM stream_entry e WHERE e.workflow_id = p_workflow_id
     GROUP BY e.stream HAVING max(e.entry_offset) >= count(*)
  LOOP
    -- Deleted and inserted anew: an update would meet offsets that are still to be moved. The window has read all that is
    -- deleted before the first row is inserted.
    WITH taken AS (
      DELETE FROM stream_entry e WHERE e.workflow_id = p_workflow_id AND e.stream = v_stream RETURNING e.*
    )
    INSERT INTO stream_entry (workflow_id, stream, entry_offset, value, seq, attempt, once_place, epoch, nonce, written_at)
    SELECT t.workflow_id, t.stream, row_number() OVER (ORDER BY t.entry_offset) - 1, t.value, t.seq, t.attempt, t.once_place,
           t.epoch, t.nonce, t.written_at
      FROM taken t;
  END LOOP;
END
$$;
