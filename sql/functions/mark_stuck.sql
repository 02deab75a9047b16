-- Lists a workflow for attention because its execution makes no progress (p_detail says for how long), or, with p_detail null,
-- takes that back. Does not take ownership: the execution meets another version at its next write, and goes on with that.
CREATE OR REPLACE FUNCTION mark_stuck(p_workflow_id text, p_token uuid, p_detail text) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  UPDATE workflow_status s
     SET attention = CASE WHEN p_detail IS NOT NULL THEN 'STUCK' END, attention_detail = p_detail,
         record_version = s.record_version + 1
   WHERE s.workflow_id = p_workflow_id AND s.owner_token = p_token
     AND (p_detail IS NOT NULL OR s.attention = 'STUCK')
$$;
