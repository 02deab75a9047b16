-- Which of these readers would find something at read_stream: one query for all who wait in a process. A reader waits for
-- offset p_offsets, and has read the entry before it under p_nonces (null: none).
CREATE OR REPLACE FUNCTION changed_streams(p_workflow_ids text[], p_streams text[], p_offsets bigint[], p_nonces uuid[])
RETURNS TABLE (item integer)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT r.place::integer
    FROM unnest(p_workflow_ids, p_streams, p_offsets, p_nonces) WITH ORDINALITY
      AS r (workflow_id, stream, next_offset, nonce, place)
    LEFT JOIN workflow_status s ON s.workflow_id = r.workflow_id
   WHERE s.workflow_id IS NULL
      OR s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
      -- There is no gap: nothing comes later while this one is missing.
      OR EXISTS (SELECT FROM stream_entry e
                  WHERE e.workflow_id = r.workflow_id AND e.stream = r.stream AND e.entry_offset = r.next_offset)
      OR r.nonce IS NOT NULL AND NOT EXISTS (
           SELECT FROM stream_entry e
            WHERE e.workflow_id = r.workflow_id AND e.stream = r.stream AND e.entry_offset = r.next_offset - 1
              AND e.nonce = r.nonce)
      -- Closed before the offset was reached.
      OR coalesce((SELECT e.value IS NULL FROM stream_entry e
                    WHERE e.workflow_id = r.workflow_id AND e.stream = r.stream
                    ORDER BY e.entry_offset DESC LIMIT 1), false)
$$;
