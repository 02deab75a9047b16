-- Everything that the named workflows have recorded, in the order in which it was recorded: one query for a replay.
-- An intent whose step has its result already is left out.
CREATE OR REPLACE FUNCTION load_history(p_workflow_ids text[])
RETURNS TABLE (
  workflow_id text, seq integer, name text, kind text, complete boolean, output text, error text, attempts integer,
  child_id text, remaining_ms double precision, record_version bigint
)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off
AS $$
  SELECT * FROM (
    SELECT r.workflow_id, r.seq, r.name, r.kind, true, r.output, r.error, r.attempts, r.child_id,
           NULL::double precision, r.record_version
      FROM step_result r WHERE r.workflow_id = ANY (p_workflow_ids)
    UNION ALL
    SELECT i.workflow_id, i.seq, i.name, i.kind, false, NULL, NULL, i.attempts, i.child_id,
           (extract(epoch FROM i.wake_at - clock()) * 1000)::double precision, i.record_version
      FROM step_intent i
     WHERE i.workflow_id = ANY (p_workflow_ids)
       AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq)
  ) h (workflow_id, seq, name, kind, complete, output, error, attempts, child_id, remaining_ms, record_version)
  ORDER BY h.workflow_id, h.record_version
$$;
