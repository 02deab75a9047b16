-- The durable core: workflows, their steps, who owned them, and the executors that run them.
--
-- Every table that an execution writes leads with workflow_id and has no uniqueness across workflows, no foreign key and
-- no trigger, so that the schema can be distributed by workflow_id. The functions in sql/functions are the only writers.
-- The search path is the Holdfast schema: names are not qualified, so that the schema may have any name.

-- The narrow, hot row: every checkpoint rewrites it. Payloads live elsewhere; the fill factor leaves room for
-- heap-only updates (with 60 one checkpoint in ten found none, with 35 one in two hundred); and no index covers a column that a checkpoint changes (record_version, updated_at).
CREATE TABLE workflow_status (
  workflow_id    text COLLATE "C" NOT NULL,
  name           text COLLATE "C" NOT NULL,
  instance       text COLLATE "C",
  status         text COLLATE "C" NOT NULL,
  owner_token    uuid,
  epoch          bigint NOT NULL DEFAULT 0,
  record_version bigint NOT NULL,
  executor_id    text COLLATE "C",
  incarnation    bigint,
  attempts       integer NOT NULL DEFAULT 0,
  max_attempts   integer NOT NULL,
  app_version    text COLLATE "C" NOT NULL DEFAULT '',
  wake_at        timestamptz,
  timeout_ms     bigint,
  deadline       timestamptz,
  parent_id      text COLLATE "C",
  parent_seq     integer,
  parent_close   text COLLATE "C",
  forked_from    text COLLATE "C",
  attributes     jsonb,
  -- Why a person has to look, as a stable code, and what was found.
  attention        text COLLATE "C",
  attention_detail text,
  created_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL,
  started_at     timestamptz,
  completed_at   timestamptz,
  PRIMARY KEY (workflow_id),
  CONSTRAINT workflow_id_length CHECK (octet_length(workflow_id) BETWEEN 1 AND 512),
  CONSTRAINT status_known CHECK (status IN
    ('ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED', 'SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')),
  CONSTRAINT owned_exactly_when_pending CHECK ((status = 'PENDING') = (owner_token IS NOT NULL)),
  CONSTRAINT pending_names_its_executor CHECK (status <> 'PENDING' OR (executor_id IS NOT NULL AND incarnation IS NOT NULL)),
  CONSTRAINT completed_exactly_when_terminal CHECK
    ((status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')) = (completed_at IS NOT NULL)),
  CONSTRAINT parent_whole CHECK ((parent_id IS NULL) = (parent_seq IS NULL) AND (parent_id IS NULL) = (parent_close IS NULL)),
  CONSTRAINT parent_close_known CHECK (parent_close IN ('cancel', 'abandon'))
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What an executor looks for when it claims: what waits, and what a dead executor left.
CREATE INDEX workflow_status_claimable ON workflow_status (created_at) INCLUDE (workflow_id) WHERE status = 'ENQUEUED';
CREATE INDEX workflow_status_due ON workflow_status (wake_at) WHERE status IN ('DELAYED', 'SUSPENDED');
CREATE INDEX workflow_status_owned ON workflow_status (executor_id, incarnation) WHERE status = 'PENDING';
CREATE INDEX workflow_status_children ON workflow_status (parent_id) WHERE parent_id IS NOT NULL;
-- Lists are pages by (created_at, workflow_id), newest first.
-- workflow_id is not a key column: with it as one, the planner takes this index on small tables for as good as the primary
-- key, keeps the plan, and later reads the whole index, 500 pages a look-up with 100,000 rows.
CREATE INDEX workflow_status_created ON workflow_status (created_at) INCLUDE (workflow_id);
CREATE INDEX workflow_status_attention ON workflow_status (created_at) WHERE attention IS NOT NULL;

CREATE TABLE workflow_input (
  workflow_id text COLLATE "C" NOT NULL,
  input       text NOT NULL,
  -- The nonce of the start: how a start whose reply was lost knows its own row again.
  nonce       uuid NOT NULL,
  PRIMARY KEY (workflow_id)
);

-- The primary key is promise 2: a second outcome is a unique violation.
CREATE TABLE workflow_outcome (
  workflow_id text COLLATE "C" NOT NULL,
  status      text COLLATE "C" NOT NULL,
  output      text,
  error       text,
  epoch       bigint NOT NULL,
  nonce       uuid NOT NULL,
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (workflow_id),
  CONSTRAINT outcome_status_terminal CHECK (status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'DEAD_LETTER')),
  CONSTRAINT outcome_is_output_or_error CHECK ((status = 'SUCCESS') = (output IS NOT NULL) AND (output IS NULL) <> (error IS NULL))
);

-- One row per completed step. Rows are inserted and, by control operations, deleted; no statement updates one, which is
-- how a recorded result never changes.
CREATE TABLE step_result (
  workflow_id    text COLLATE "C" NOT NULL,
  seq            integer NOT NULL,
  name           text COLLATE "C" NOT NULL,
  kind           text COLLATE "C" NOT NULL,
  output         text,
  error          text,
  attempts       integer NOT NULL,
  -- Errors of the attempts before the last one, where there were any.
  attempt_errors text,
  child_id       text COLLATE "C",
  -- record_version as of the write: the order in which results reached the workflow, and reach it again on replay.
  record_version bigint NOT NULL,
  epoch          bigint NOT NULL,
  nonce          uuid NOT NULL,
  started_at     timestamptz NOT NULL,
  completed_at   timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, seq),
  CONSTRAINT output_or_error CHECK ((output IS NULL) <> (error IS NULL))
);

-- What a step has to make durable before it can wait: when a sleep ends, which child was started.
CREATE TABLE step_intent (
  workflow_id    text COLLATE "C" NOT NULL,
  seq            integer NOT NULL,
  name           text COLLATE "C" NOT NULL,
  kind           text COLLATE "C" NOT NULL,
  child_id       text COLLATE "C",
  wake_at        timestamptz,
  record_version bigint NOT NULL,
  epoch          bigint NOT NULL,
  nonce          uuid NOT NULL,
  recorded_at    timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, seq)
);
-- Who waits for a workflow: asked before it is deleted. Sleeps have no entry in it.
CREATE INDEX step_intent_child ON step_intent (child_id) WHERE child_id IS NOT NULL;

-- One row per epoch: what an operator reads to see a takeover.
CREATE TABLE workflow_ownership (
  workflow_id text COLLATE "C" NOT NULL,
  epoch       bigint NOT NULL,
  executor_id text COLLATE "C" NOT NULL,
  incarnation bigint NOT NULL,
  -- started, recovered, claimed
  reason      text COLLATE "C" NOT NULL,
  owned_at    timestamptz NOT NULL,
  ended_at    timestamptz,
  -- completed, released, blocked, taken over, or the control operation that ended it
  ended_how   text COLLATE "C",
  -- The nonce of the write that gave the ownership up.
  nonce       uuid,
  PRIMARY KEY (workflow_id, epoch)
) WITH (fillfactor = 50);

-- One row per incarnation. A lease decides when someone may try to take over, never who may write.
CREATE TABLE executor (
  executor_id   text COLLATE "C" NOT NULL,
  incarnation   bigint NOT NULL,
  app_version   text COLLATE "C" NOT NULL,
  host          text NOT NULL,
  process_id    integer NOT NULL,
  registered_at timestamptz NOT NULL,
  heartbeat_at  timestamptz NOT NULL,
  lease_until   timestamptz NOT NULL,
  PRIMARY KEY (executor_id, incarnation)
);

-- Who did what to which workflow by hand, and why; written in the transaction of the act.
CREATE TABLE admin_audit (
  audit_id      uuid NOT NULL,
  workflow_id   text COLLATE "C" NOT NULL,
  verb          text COLLATE "C" NOT NULL,
  actor         text NOT NULL,
  reason        text,
  status_before text COLLATE "C",
  status_after  text COLLATE "C",
  detail        jsonb,
  acted_at      timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, audit_id)
);
