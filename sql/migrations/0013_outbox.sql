-- The outbox: events that workflows, and others in their own transactions, have for the outside world.
-- compatible-with: 1
--
-- An event is a row from the commit of what it tells of until it is delivered. It outlives its workflow.
--
-- Whoever adds one inserts a row and touches nothing else: no lock is held for as long as somebody's transaction lasts. What order
-- there is among the events of one topic and key, their lane, is made afterwards, by relays, in short transactions under a lock
-- of the lane. At most one event of a lane is its head; the others are behind it, and are not looked at however many they are.
CREATE TABLE outbox_event (
  event_id    uuid NOT NULL,
  topic       text COLLATE "C" NOT NULL,
  -- Null: in no order, a head from the beginning.
  event_key   text COLLATE "C",
  payload     text NOT NULL,
  --   new     has not got its place in its lane yet
  --   behind  waits for the head of its lane
  --   ready   a head: is delivered when it is due
  --   dead    a head that is not delivered any more until a person decides
  state       text COLLATE "C" NOT NULL,
  -- The order of adding. Of one adder it is the order of its calls.
  position    bigint GENERATED ALWAYS AS IDENTITY,
  -- The workflow that added it; null: somebody outside.
  workflow_id text COLLATE "C",
  -- The call that added it, so that a rewind can take it back. Null once that workflow has been deleted.
  seq         integer,
  attempts    integer NOT NULL DEFAULT 0,
  -- While a relay has it: when its lease ends, after which it is due again.
  due_at      timestamptz NOT NULL,
  -- The relay's that has it, or had it last.
  token       uuid,
  -- Why it is dead, as a stable code; and the error of its last attempt.
  reason      text COLLATE "C",
  error       text,
  added_at    timestamptz NOT NULL,
  died_at     timestamptz,
  PRIMARY KEY (event_id),
  CONSTRAINT event_topic_length CHECK (octet_length(topic) BETWEEN 1 AND 255),
  CONSTRAINT event_key_length CHECK (octet_length(event_key) BETWEEN 1 AND 512),
  CONSTRAINT event_state_known CHECK (state IN ('new', 'behind', 'ready', 'dead')),
  CONSTRAINT only_keys_have_lanes CHECK (event_key IS NOT NULL OR state IN ('ready', 'dead')),
  CONSTRAINT dead_for_a_reason CHECK ((state = 'dead') = (died_at IS NOT NULL) AND (state = 'dead') = (reason IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What is to be delivered. One look for each topic, whatever else waits in others.
CREATE INDEX outbox_event_ready ON outbox_event (topic, due_at) WHERE state = 'ready';
-- Lanes that somebody has to look at: found by hopping from one to the next.
CREATE INDEX outbox_event_new ON outbox_event (topic, event_key, position) WHERE state = 'new';
CREATE INDEX outbox_event_behind ON outbox_event (topic, event_key, position) WHERE state = 'behind';
-- That a lane has one head is not left to the functions.
CREATE UNIQUE INDEX outbox_event_head ON outbox_event (topic, event_key)
  WHERE event_key IS NOT NULL AND state IN ('ready', 'dead');
-- Lists, and the oldest event. By died_at and not by state, so that no look for a state can take these for its own.
CREATE INDEX outbox_event_open ON outbox_event (position) WHERE died_at IS NULL;
CREATE INDEX outbox_event_dead ON outbox_event (position) WHERE died_at IS NOT NULL;
CREATE INDEX outbox_event_attention ON outbox_event (added_at, event_id) WHERE died_at IS NOT NULL;
CREATE INDEX outbox_event_origin ON outbox_event (workflow_id, seq) WHERE seq IS NOT NULL;
