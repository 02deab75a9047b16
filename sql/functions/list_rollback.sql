-- A workflow's rollback, in the order in which it runs: the marker first, then one row for each compensation that is planned.
-- No row: the workflow is not rolled back. No compensation: nothing is planned yet, or there is nothing to undo.
--
--   state of the marker         null
--   state of a compensation     pending     not come to yet, or under way
--                               failed      it failed for good; failure is the error
--                               done        it has run
--                               not-needed  what it undoes has not happened
--                               by-hand     recorded as dealt with by skip_compensation
-- A compensation that no attempt was made for needs none; one that no ownership recorded (epoch 0) was recorded by hand.
CREATE OR REPLACE FUNCTION list_rollback(p_workflow_id text)
RETURNS TABLE (
  seq integer, name text, undoes integer, state text, attempts integer, failure text, began_at timestamptz, completed_at timestamptz
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT r.seq, r.name, NULL::integer, NULL::text, NULL::integer, r.error, r.started_at, NULL::timestamptz
    FROM step_result r WHERE r.workflow_id = p_workflow_id AND r.kind = 'rollback'
  UNION ALL
  SELECT i.seq, i.name, i.undoes,
         CASE WHEN r.seq IS NULL THEN CASE WHEN i.failure IS NULL THEN 'pending' ELSE 'failed' END
              WHEN r.epoch = 0 THEN 'by-hand'
              WHEN r.attempts = 0 THEN 'not-needed'
              ELSE 'done' END,
         coalesce(r.attempts, 0), CASE WHEN r.seq IS NULL THEN i.failure END, i.recorded_at, r.completed_at
    FROM step_intent i
    LEFT JOIN step_result r ON r.workflow_id = i.workflow_id AND r.seq = i.seq
   WHERE i.workflow_id = p_workflow_id AND i.kind = 'compensation'
  ORDER BY 1
$$;
