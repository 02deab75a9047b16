-- One page of who owned a workflow, the newest epoch first. It begins below p_before_epoch (null: at the newest).
CREATE OR REPLACE FUNCTION list_ownership(p_workflow_id text, p_before_epoch bigint, p_limit integer)
RETURNS TABLE (
  epoch bigint, executor_id text, incarnation bigint, reason text, owned_at timestamptz, ended_at timestamptz,
  ended_how text, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT o.epoch, o.executor_id, o.incarnation, o.reason, o.owned_at, o.ended_at, o.ended_how,
         o.following IS NOT NULL
    FROM (
      SELECT w.*, lead(w.epoch) OVER (ORDER BY w.epoch DESC) AS following
        FROM (
          SELECT * FROM workflow_ownership x
           WHERE x.workflow_id = p_workflow_id AND (p_before_epoch IS NULL OR x.epoch < p_before_epoch)
           ORDER BY x.epoch DESC
           LIMIT p_limit + 1
        ) w
    ) o
   ORDER BY o.epoch DESC
   LIMIT p_limit
$$;
