-- Queues: their settings, what a workflow's row says about its place in one, and deduplication.
-- compatible-with: 1
--
-- A workflow that waits is a row ENQUEUED; one that holds a slot is a row PENDING or SUSPENDED. Nothing else counts: no
-- counter can leak a slot, and no process takes one with it when it dies. A library of the schema before this one goes on
-- working: its claims leave the workflows of queues to others.

-- Null: no limit. Edited while executors run.
CREATE TABLE queue (
  name                 text COLLATE "C" NOT NULL,
  -- Workflows that hold a slot: in all executors, in each of them, and of each key.
  concurrency          integer,
  executor_concurrency integer,
  key_concurrency      integer,
  -- Claims in any window of this length.
  rate_limit           integer,
  rate_period_ms       bigint,
  key_rate_limit       integer,
  key_rate_period_ms   bigint,
  paused               boolean NOT NULL DEFAULT false,
  -- The declaration that a launch applied last; it is applied again only when it changes, so that edits outlive restarts.
  declared             jsonb,
  created_at           timestamptz NOT NULL,
  updated_at           timestamptz NOT NULL,
  PRIMARY KEY (name),
  CONSTRAINT limits_positive CHECK
    (least(concurrency, executor_concurrency, key_concurrency, rate_limit, rate_period_ms, key_rate_limit, key_rate_period_ms) > 0),
  CONSTRAINT rate_whole CHECK ((rate_limit IS NULL) = (rate_period_ms IS NULL)),
  CONSTRAINT key_rate_whole CHECK ((key_rate_limit IS NULL) = (key_rate_period_ms IS NULL))
);

-- Claims from queues with a rate limit, as long as they count.
CREATE TABLE queue_start (
  start_id      uuid NOT NULL,
  queue         text COLLATE "C" NOT NULL,
  partition_key text COLLATE "C" NOT NULL,
  started_at    timestamptz NOT NULL,
  PRIMARY KEY (start_id)
);
CREATE INDEX queue_start_queue ON queue_start (queue, started_at);
CREATE INDEX queue_start_key ON queue_start (queue, partition_key, started_at);

-- Who holds a deduplication ID: until its workflow is terminal, or until held_until. Apart from the workflows, since this
-- uniqueness goes across them. Ends of workflows do not touch it: whoever wants the ID looks whether it is still held.
CREATE TABLE queue_deduplication (
  -- The empty text: no queue.
  queue            text COLLATE "C" NOT NULL,
  deduplication_id text COLLATE "C" NOT NULL,
  workflow_id      text COLLATE "C" NOT NULL,
  held_until       timestamptz,
  -- When it was last found to be held.
  checked_at       timestamptz NOT NULL,
  PRIMARY KEY (queue, deduplication_id)
) WITH (fillfactor = 80);
CREATE INDEX queue_deduplication_workflow ON queue_deduplication (workflow_id);
CREATE INDEX queue_deduplication_checked ON queue_deduplication (checked_at);

ALTER TABLE workflow_status
  ADD COLUMN queue            text COLLATE "C",
  -- Lower goes first.
  ADD COLUMN priority         integer NOT NULL DEFAULT 0,
  -- The empty text: no key.
  ADD COLUMN partition_key    text COLLATE "C" NOT NULL DEFAULT '',
  -- The place in the line of its queue, priority and key: when it was enqueued, or is due for the first time.
  ADD COLUMN queued_at        timestamptz,
  -- One that is held until the workflow is terminal; taken again when it is resumed.
  ADD COLUMN deduplication_id text COLLATE "C",
  ADD CONSTRAINT queued_has_a_place CHECK (queue IS NULL OR queued_at IS NOT NULL);

-- Without what waits in queues, since a backlog must not be read by those who look for something else.
DROP INDEX workflow_status_claimable;
CREATE INDEX workflow_status_claimable ON workflow_status (created_at) INCLUDE (workflow_id)
  WHERE status = 'ENQUEUED' AND queue IS NULL;
CREATE INDEX workflow_status_line ON workflow_status (queue, priority, partition_key, queued_at)
  WHERE status = 'ENQUEUED' AND queue IS NOT NULL;
CREATE INDEX workflow_status_slots ON workflow_status (queue, partition_key)
  WHERE status IN ('PENDING', 'SUSPENDED') AND queue IS NOT NULL;
