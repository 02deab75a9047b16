-- Fewer index entries a workflow: an update that changes the status makes one in every index that has the row.
-- compatible-with: 1

-- Lists are pages by the time of creation, which never changes: so is the row of the input, once it is there.
-- workflow_id is not a key column: see 0001.
ALTER TABLE workflow_input ADD COLUMN created_at timestamptz;
UPDATE workflow_input i SET created_at = s.created_at FROM workflow_status s WHERE s.workflow_id = i.workflow_id;
ALTER TABLE workflow_input ALTER COLUMN created_at SET NOT NULL;
CREATE INDEX workflow_input_created ON workflow_input (created_at) INCLUDE (workflow_id);
DROP INDEX workflow_status_created;

-- What holds a slot of a queue is found by who runs it; only what has a key, by that; and what sleeps.
DROP INDEX workflow_status_owned;
CREATE INDEX workflow_status_owned ON workflow_status (executor_id, incarnation, queue) WHERE status = 'PENDING';
DROP INDEX workflow_status_slots;
CREATE INDEX workflow_status_keys ON workflow_status (queue, partition_key)
  WHERE status IN ('PENDING', 'SUSPENDED') AND queue IS NOT NULL AND partition_key <> '';
CREATE INDEX workflow_status_asleep ON workflow_status (queue) WHERE status = 'SUSPENDED' AND queue IS NOT NULL;
