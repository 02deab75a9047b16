-- One page of a workflow's steps by number: results, and open steps with what they have recorded before they wait. It begins
-- after p_after_seq (null: at the first). Payloads only with p_payload, bounded as in find_workflows.
CREATE OR REPLACE FUNCTION list_steps(
  p_workflow_id text, p_after_seq bigint, p_limit integer, p_payload boolean, p_payload_bytes bigint
)
RETURNS TABLE (
  seq integer, name text, kind text, complete boolean, output text, error text, attempts integer, attempt_errors text,
  child_id text, wake_at timestamptz, record_version bigint, epoch bigint, started_at timestamptz,
  completed_at timestamptz, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  WITH page AS (
    SELECT h.*, row_number() OVER (ORDER BY h.seq) AS place
      FROM (
        SELECT r.seq, r.name, r.kind, true AS complete, CASE WHEN p_payload THEN r.output END AS output,
               CASE WHEN p_payload THEN r.error END AS error, r.attempts,
               CASE WHEN p_payload THEN r.attempt_errors END AS attempt_errors, r.child_id, i.wake_at,
               r.record_version, r.epoch, r.started_at, r.completed_at
          FROM step_result r
          LEFT JOIN step_intent i ON i.workflow_id = r.workflow_id AND i.seq = r.seq
         WHERE r.workflow_id = p_workflow_id AND (p_after_seq IS NULL OR r.seq > p_after_seq)
        UNION ALL
        SELECT i.seq, i.name, i.kind, false, NULL, NULL, i.attempts, NULL, i.child_id, i.wake_at,
               i.record_version, i.epoch, i.recorded_at, NULL
          FROM step_intent i
         WHERE i.workflow_id = p_workflow_id AND (p_after_seq IS NULL OR i.seq > p_after_seq)
           AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq)
      ) h
     ORDER BY h.seq
     LIMIT p_limit + 1
  ), filled AS (
    SELECT p.*, lead(p.place) OVER by_place IS NOT NULL AS has_more,
           sum(coalesce(octet_length(p.output), 0) + coalesce(octet_length(p.error), 0)
               + coalesce(octet_length(p.attempt_errors), 0)) OVER by_place AS bytes
      FROM page p
    WINDOW by_place AS (ORDER BY p.place)
  )
  SELECT f.seq, f.name, f.kind, f.complete, f.output, f.error, f.attempts, f.attempt_errors, f.child_id, f.wake_at,
         f.record_version, f.epoch, f.started_at, f.completed_at, f.has_more
    FROM filled f
   WHERE f.place <= p_limit AND (f.place = 1 OR f.bytes <= p_payload_bytes)
   ORDER BY f.place
$$;
