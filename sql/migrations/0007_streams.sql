-- Streams: what workflows and their steps write for readers in other processes.
-- compatible-with: 1

-- One row per entry. The offsets of a stream are 0, 1, 2, … without a gap: whoever writes holds the workflow's row locked.
CREATE TABLE stream_entry (
  workflow_id  text COLLATE "C" NOT NULL,
  stream       text COLLATE "C" NOT NULL,
  entry_offset bigint NOT NULL,
  -- Null in the last entry of a stream that has been closed.
  value        text,
  -- The durable call that wrote it: a call of its own in the workflow, or the step in whose body it was written.
  seq          integer NOT NULL,
  -- The attempt of that step, counted anew in each epoch; 1 for a call of its own.
  attempt      integer NOT NULL,
  -- With oncePerStep: its place among what that step writes to this stream.
  once_place   integer,
  epoch        bigint NOT NULL,
  nonce        uuid NOT NULL,
  written_at   timestamptz NOT NULL,
  PRIMARY KEY (workflow_id, stream, entry_offset),
  CONSTRAINT stream_key_length CHECK (octet_length(stream) BETWEEN 1 AND 512),
  CONSTRAINT entry_offset_not_negative CHECK (entry_offset >= 0)
);
-- A step that is tried again writes an entry of this kind once.
CREATE UNIQUE INDEX stream_entry_once ON stream_entry (workflow_id, stream, seq, once_place) WHERE once_place IS NOT NULL;
