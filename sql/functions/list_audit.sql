-- One page of what was done to a workflow by hand, the newest act first; of a deleted one, too. It begins below the act that
-- p_before_us (microseconds since 1970) and p_before_id name (null: at the newest).
CREATE OR REPLACE FUNCTION list_audit(p_workflow_id text, p_before_us bigint, p_before_id uuid, p_limit integer)
RETURNS TABLE (
  audit_id uuid, verb text, actor text, reason text, status_before text, status_after text, detail jsonb,
  acted_at timestamptz, acted_us bigint, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT a.audit_id, a.verb, a.actor, a.reason, a.status_before, a.status_after, a.detail, a.acted_at,
         (extract(epoch FROM a.acted_at) * 1000000)::bigint, a.following IS NOT NULL
    FROM (
      SELECT w.*, lead(w.audit_id) OVER (ORDER BY w.acted_at DESC, w.audit_id DESC) AS following
        FROM (
          SELECT * FROM admin_audit x
           WHERE x.workflow_id = p_workflow_id
             AND (p_before_us IS NULL
                  OR (x.acted_at, x.audit_id) < ('epoch'::timestamptz + p_before_us * interval '1 microsecond', p_before_id))
           ORDER BY x.acted_at DESC, x.audit_id DESC
           LIMIT p_limit + 1
        ) w
    ) a
   ORDER BY a.acted_at DESC, a.audit_id DESC
   LIMIT p_limit
$$;
