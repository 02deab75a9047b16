-- One page of a stream from offset p_from on, at most p_limit entries and p_bytes of values, but at least one. All in one
-- snapshot, so that a workflow that is over has no entry that comes later.
--
-- No row: there is no such workflow. Otherwise each row says
--   is_over       nothing more is to come: the stream is closed, or the workflow is terminal
--   is_rewritten  p_nonce is not null, and no longer the nonce of the entry before p_from: a rewind, or a delete, took back what
--                 the reader has read
--   has_more      the stream has more than this page
-- and, unless there is none, has an entry.
CREATE OR REPLACE FUNCTION read_stream(
  p_workflow_id text, p_stream text, p_from bigint, p_nonce uuid, p_limit integer, p_bytes bigint
)
RETURNS TABLE (
  is_over boolean, is_rewritten boolean, has_more boolean, entry_offset bigint, value text, seq integer, attempt integer,
  epoch bigint, nonce uuid, written_at timestamptz
)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  WITH page AS (
    SELECT e.*, row_number() OVER (ORDER BY e.entry_offset) AS place
      FROM (SELECT * FROM stream_entry e
             WHERE e.workflow_id = p_workflow_id AND e.stream = p_stream AND e.entry_offset >= p_from AND e.value IS NOT NULL
             ORDER BY e.entry_offset
             LIMIT p_limit + 1) e
  ), filled AS (
    SELECT p.*, lead(p.place) OVER by_place IS NOT NULL AS has_more, sum(octet_length(p.value)) OVER by_place AS bytes
      FROM page p
    WINDOW by_place AS (ORDER BY p.place)
  )
  SELECT s.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')
           OR coalesce((SELECT e.value IS NULL FROM stream_entry e
                         WHERE e.workflow_id = p_workflow_id AND e.stream = p_stream
                         ORDER BY e.entry_offset DESC LIMIT 1), false),
         p_nonce IS NOT NULL AND NOT EXISTS (
           SELECT FROM stream_entry e
            WHERE e.workflow_id = p_workflow_id AND e.stream = p_stream AND e.entry_offset = p_from - 1 AND e.nonce = p_nonce),
         coalesce(f.has_more, false), f.entry_offset, f.value, f.seq, f.attempt, f.epoch, f.nonce, f.written_at
    FROM workflow_status s
    LEFT JOIN filled f ON f.place = 1 OR f.place <= p_limit AND f.bytes <= p_bytes
   WHERE s.workflow_id = p_workflow_id
   ORDER BY f.place
$$;
