-- Messages to workflows, and events that workflows set.
-- compatible-with: 1
--
-- Both lead with the workflow they belong to: a message with its receiver, an event with the workflow that set it.

-- A message is there exactly once: its ID is the idempotency key that the sender gave, or a random one, by which a send
-- whose reply was lost knows its own row again. Received messages stay, with the number of the call that got them, so that
-- a rewind can give them back; they go with the workflow.
CREATE TABLE message (
  workflow_id  text COLLATE "C" NOT NULL,
  message_id   text COLLATE "C" NOT NULL,
  topic        text COLLATE "C" NOT NULL,
  payload      text NOT NULL,
  -- The workflow that sent it; null: somebody outside.
  sender       text COLLATE "C",
  -- The order of sending. Of one sender it is the order of its calls.
  position     bigint GENERATED ALWAYS AS IDENTITY,
  -- The call that received it; null: it waits.
  consumed_seq integer,
  sent_at      timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, message_id),
  CONSTRAINT message_id_length CHECK (octet_length(message_id) BETWEEN 1 AND 512),
  CONSTRAINT topic_length CHECK (octet_length(topic) BETWEEN 1 AND 255)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The next message of a topic.
CREATE INDEX message_waiting ON message (workflow_id, topic, position) WHERE consumed_seq IS NULL;

-- Every value that an event has had. The current one is that of the highest record version; the others are kept so that a
-- fork has the one of its step, and a rewind goes back to it.
CREATE TABLE event (
  workflow_id    text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL,
  value          text NOT NULL,
  -- The call that set it, and the version of the record as of then.
  seq            integer NOT NULL,
  record_version bigint NOT NULL,
  set_at         timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, key, record_version),
  CONSTRAINT event_key_length CHECK (octet_length(key) BETWEEN 1 AND 255)
);
