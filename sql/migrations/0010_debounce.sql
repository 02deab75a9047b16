-- Queues: debounced workflows.
-- compatible-with: 1

-- Which workflow the calls of one debounce key go to, as long as no execution has owned it. Apart from the workflows, as
-- deduplication is; and as there, starts do not touch it: whoever comes looks whether the workflow has started.
CREATE TABLE queue_debounce (
  -- The empty text: no queue.
  queue        text COLLATE "C" NOT NULL,
  name         text COLLATE "C" NOT NULL,
  debounce_key text COLLATE "C" NOT NULL,
  workflow_id  text COLLATE "C" NOT NULL,
  -- When the first of these calls came.
  first_at     timestamptz NOT NULL,
  -- When it was last found to be in use.
  checked_at   timestamptz NOT NULL,
  PRIMARY KEY (queue, name, debounce_key)
) WITH (fillfactor = 80);
CREATE INDEX queue_debounce_workflow ON queue_debounce (workflow_id);
CREATE INDEX queue_debounce_checked ON queue_debounce (checked_at);

-- They have further parameters now: they are made anew with the functions.
DROP FUNCTION IF EXISTS enqueue_items(
  text[], uuid[], text[], text[], text[], integer[], bigint[], text[], text[], integer[], text[], bigint[], text[], bigint[],
  text, integer, text
);
DROP FUNCTION IF EXISTS enqueue_batch(
  text[], uuid[], text[], text[], text[], integer[], bigint[], text[], text[], integer[], text[], bigint[], text[], bigint[]
);
DROP FUNCTION IF EXISTS record_enqueue(
  text, uuid, bigint, uuid, integer, text, text, text, text, text, text, text, integer, bigint, text, text, integer, text,
  bigint, text, bigint, text
);
DROP FUNCTION IF EXISTS list_queues(text);
