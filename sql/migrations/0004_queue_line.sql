-- Queues: a line in which only what can be run is read.
-- compatible-with: 1

-- Name and version come before the place, so that a long backlog of what an executor cannot run is passed over by one look
-- instead of being read at every claim. The empty version is what runs on any.
DROP INDEX workflow_status_line;
CREATE INDEX workflow_status_line ON workflow_status (
  queue, priority, partition_key, name,
  (CASE WHEN any_version OR epoch = 0 AND forked_from IS NULL THEN '' ELSE '=' || app_version END), queued_at
) WHERE status = 'ENQUEUED' AND queue IS NOT NULL;

-- Their answers have other columns now: they are made anew with the functions.
DROP FUNCTION IF EXISTS queue_room(text, text, bigint);
DROP FUNCTION IF EXISTS key_room(queue, text, text[]);
DROP FUNCTION IF EXISTS pick_from_queue(text, integer, text, bigint, text, text[], text[], text, text[]);
DROP FUNCTION IF EXISTS recover_from_queue(text, integer, text, bigint, text, text[], text[]);
DROP FUNCTION IF EXISTS waiting_keys(text, integer, text, integer);
