-- Suspension: workflows that wait are unloaded, and woken by what they wait for.
-- compatible-with: 1

-- Workflows that have to be looked at again: inserted in the transaction of what wakes them, removed by whoever has looked.
-- Apart from the workflow's row, so that a sender, in a transaction of its own that may take long, locks nobody's workflow.
CREATE TABLE wakeup (
  wakeup_id   uuid NOT NULL,
  workflow_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (wakeup_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Which suspended workflow waits for an outcome or an event of which other one.
CREATE TABLE workflow_wait (
  waiter_id text COLLATE "C" NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (waiter_id, target_id)
);
CREATE INDEX workflow_wait_target ON workflow_wait (target_id);
