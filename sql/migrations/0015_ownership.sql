-- Fewer writes a workflow: the ownership that is under way stands in the workflow's row.
-- compatible-with: 1
--
-- An ownership that ends with the outcome, as most do, then needs no row of its own: who, since when and why are in the
-- workflow's row, until when is its completion.

ALTER TABLE workflow_ownership RENAME TO ended_ownership;
ALTER TABLE ended_ownership RENAME CONSTRAINT workflow_ownership_pkey TO ended_ownership_pkey;

ALTER TABLE workflow_status
  -- Of the ownership of this epoch, as long as it has no row in ended_ownership: while it lasts, and when it has ended with
  -- the outcome that an execution has recorded. owned_reason: started, recovered, claimed, resumed.
  ADD COLUMN owned_at     timestamptz,
  ADD COLUMN owned_reason text COLLATE "C",
  ADD CONSTRAINT owned_for_a_reason CHECK ((owned_at IS NULL) = (owned_reason IS NULL));

WITH live AS (
  DELETE FROM ended_ownership o WHERE o.ended_at IS NULL RETURNING o.*
)
UPDATE workflow_status s
   SET owned_at = l.owned_at, owned_reason = l.reason
  FROM live l
 WHERE s.workflow_id = l.workflow_id AND s.epoch = l.epoch;

ALTER TABLE ended_ownership
  ALTER COLUMN ended_at SET NOT NULL,
  ALTER COLUMN ended_how SET NOT NULL;

-- One row per epoch: what an operator reads to see a takeover.
CREATE VIEW workflow_ownership AS
  SELECT o.workflow_id, o.epoch, o.executor_id, o.incarnation, o.reason, o.owned_at, o.ended_at, o.ended_how, o.nonce
    FROM ended_ownership o
  UNION ALL
  SELECT s.workflow_id, s.epoch, s.executor_id, s.incarnation, s.owned_reason, s.owned_at, s.completed_at,
         CASE WHEN s.completed_at IS NOT NULL THEN 'completed' COLLATE "C" END,
         (SELECT c.nonce FROM workflow_outcome c WHERE c.workflow_id = s.workflow_id)
    FROM workflow_status s WHERE s.owned_at IS NOT NULL;
