-- Schedules: what is to be run when, and which workflows are runs of which schedule.
-- compatible-with: 1
--
-- next_fire_at is the whole state of a schedule's progress. It moves on in the transaction that enqueues the run of the tick
-- that it named, so a tick is neither lost nor doubled, whoever fires it and whatever dies on the way. Cron expressions are
-- understood by the library, not by the database, which compares times and nothing else. A library of the schema before this
-- one goes on working: it fires nothing, and runs what others fire.

CREATE TABLE schedule (
  name             text COLLATE "C" NOT NULL,
  -- What a run is enqueued with.
  workflow_name    text COLLATE "C" NOT NULL,
  instance         text,
  input            text NOT NULL,
  max_attempts     integer NOT NULL,
  timeout_ms       bigint,
  attributes       jsonb,
  -- Null: none, or where runs have to wait for each other, the queue that schedules share.
  queue            text COLLATE "C",
  priority         integer NOT NULL,
  partition_key    text COLLATE "C",
  cron             text NOT NULL,
  time_zone        text NOT NULL,
  catch_up         text NOT NULL,
  overlap          text NOT NULL,
  paused           boolean NOT NULL DEFAULT false,
  -- Grows with every change to the definition: what was computed from an older one is refused.
  revision         bigint NOT NULL DEFAULT 1,
  next_fire_at     timestamptz NOT NULL,
  -- The last tick that led to a run, and that run.
  last_fired_at    timestamptz,
  last_workflow_id text COLLATE "C",
  -- Ticks that led to none.
  skipped          bigint NOT NULL DEFAULT 0,
  -- The declaration that a launch applied last; it is applied again only when it changes, so that edits outlive restarts.
  declared         jsonb,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  PRIMARY KEY (name),
  CONSTRAINT catch_up_known CHECK (catch_up IN ('none', 'last', 'all')),
  CONSTRAINT overlap_known CHECK (overlap IN ('skip', 'queue', 'cancel')),
  CONSTRAINT all_are_queued CHECK (catch_up <> 'all' OR overlap = 'queue'),
  CONSTRAINT key_is_free CHECK (partition_key IS NULL OR queue IS NOT NULL AND overlap <> 'queue')
);
CREATE INDEX schedule_due ON schedule (next_fire_at, name) WHERE NOT paused;

ALTER TABLE workflow_status
  -- The schedule whose run it is, and the tick. A fork has them too, since its code may ask for the tick.
  ADD COLUMN schedule       text COLLATE "C",
  ADD COLUMN scheduled_at   timestamptz,
  ADD COLUMN schedule_cause text,
  ADD CONSTRAINT schedule_whole CHECK
    ((schedule IS NULL) = (scheduled_at IS NULL) AND (schedule IS NULL) = (schedule_cause IS NULL)),
  ADD CONSTRAINT schedule_cause_known CHECK (schedule_cause IN ('tick', 'trigger', 'backfill', 'fork'));

-- Runs that the next tick would overlap with.
CREATE INDEX workflow_status_schedule ON workflow_status (schedule)
  WHERE schedule_cause IN ('tick', 'trigger') AND status IN ('ENQUEUED', 'DELAYED', 'PENDING', 'SUSPENDED', 'BLOCKED');
