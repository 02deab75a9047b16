-- Workflows that run again after they had ended take their deduplication IDs again, unless another workflow has them: who
-- resumes or rewinds a workflow decides that it runs, whatever holds its ID meanwhile. An ID that was held for a time stays
-- as it is.
CREATE OR REPLACE FUNCTION retake_deduplication(p_workflow_ids text[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  INSERT INTO queue_deduplication AS d (queue, deduplication_id, workflow_id, checked_at)
  SELECT DISTINCT ON (1, 2) coalesce(s.queue, ''), s.deduplication_id, s.workflow_id, clock()
    FROM workflow_status s
   WHERE s.workflow_id = ANY (p_workflow_ids) AND s.deduplication_id IS NOT NULL
   ORDER BY 1, 2, 3
  ON CONFLICT (queue, deduplication_id) DO UPDATE
    SET workflow_id = EXCLUDED.workflow_id, held_until = NULL, checked_at = EXCLUDED.checked_at
    WHERE d.held_until IS NULL AND EXISTS (
      SELECT FROM workflow_status h
       WHERE h.workflow_id = d.workflow_id AND h.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER'))
$$;
