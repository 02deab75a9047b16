-- A workflow's record before step p_step, in the order in which it was recorded: results, and intents without a result yet.
CREATE OR REPLACE FUNCTION record_before(p_workflow_id text, p_step integer)
RETURNS TABLE (seq integer, complete boolean, place bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT h.seq, h.complete, row_number() OVER (ORDER BY h.record_version)
    FROM (
      SELECT r.seq, true, r.record_version
        FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.seq < p_step
      UNION ALL
      SELECT i.seq, false, i.record_version
        FROM step_intent i
       WHERE i.workflow_id = p_workflow_id AND i.seq < p_step
         AND NOT EXISTS (SELECT FROM step_result r WHERE r.workflow_id = i.workflow_id AND r.seq = i.seq)
    ) h (seq, complete, record_version)
$$;
