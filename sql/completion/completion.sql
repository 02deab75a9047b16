-- What the application's own database keeps where it is another one than Holdfast's: which transactions of workflows have taken
-- effect, so that body and completion commit together, and the record in Holdfast's database follows. Applied at launch, or by hand
-- with what renderCompletionSql() returns; any number of times. Names are found by the search path.

-- The decision about one call of a workflow: what its body came to. The primary key lets one of several executions have it.
CREATE TABLE IF NOT EXISTS completion (
  -- Which Holdfast: several may use this database.
  installation uuid NOT NULL,
  workflow_id  text COLLATE "C" NOT NULL,
  seq          integer NOT NULL,
  -- Which life of that call: another one after a rewind, or after the workflow was deleted and its ID started again.
  generation   bigint NOT NULL,
  output       text,
  error        text,
  -- What the body adds to the outbox, as JSON: it goes along with the record.
  events       text,
  epoch        bigint NOT NULL,
  completed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (installation, workflow_id, seq, generation),
  CONSTRAINT completion_is_output_or_error CHECK ((output IS NULL) <> (error IS NULL))
);

-- The latest owner of a workflow that has begun a transaction here: transactions of earlier ones are refused from then on.
CREATE TABLE IF NOT EXISTS completion_owner (
  installation uuid NOT NULL,
  workflow_id  text COLLATE "C" NOT NULL,
  generation   bigint NOT NULL,
  epoch        bigint NOT NULL,
  entered_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (installation, workflow_id)
) WITH (fillfactor = 70);

-- An execution announces itself, in a transaction of its own. It waits for open transactions of earlier owners. False: a later
-- one has been here.
CREATE OR REPLACE FUNCTION enter_completions(p_installation uuid, p_workflow_id text, p_generation bigint, p_epoch bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  INSERT INTO completion_owner AS o (installation, workflow_id, generation, epoch)
  VALUES (p_installation, p_workflow_id, p_generation, p_epoch)
  ON CONFLICT (installation, workflow_id) DO UPDATE
    SET generation = excluded.generation, epoch = excluded.epoch, entered_at = clock_timestamp()
  WHERE (o.generation, o.epoch) <= (excluded.generation, excluded.epoch);
  RETURN FOUND;
END
$$;

-- The first statement of a transaction: what is known of the call. Shares the lock of the owner's row until the end, so that a
-- later owner waits for this transaction, and this one does not begin when a later owner has been here.
--   {"answer": "run"}  nothing: the body is to run      {"answer": "fenced"}  a later owner has been here
--   {"answer": "done", "output": …, "error": …, "events": …}  it is decided
CREATE OR REPLACE FUNCTION begin_completion(
  p_installation uuid, p_workflow_id text, p_seq integer, p_generation bigint, p_owner_generation bigint, p_epoch bigint
)
RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_found completion%ROWTYPE;
BEGIN
  PERFORM FROM completion_owner o
    WHERE o.installation = p_installation AND o.workflow_id = p_workflow_id
      AND o.generation = p_owner_generation AND o.epoch = p_epoch
      FOR SHARE;
  IF NOT FOUND THEN
    RETURN '{"answer":"fenced"}';
  END IF;
  SELECT * INTO v_found FROM completion c
   WHERE c.installation = p_installation AND c.workflow_id = p_workflow_id AND c.seq = p_seq
     AND c.generation = p_generation;
  IF FOUND THEN
    RETURN json_build_object('answer', 'done', 'output', v_found.output, 'error', v_found.error,
                             'events', v_found.events);
  END IF;
  RETURN '{"answer":"run"}';
END
$$;

-- The last statement of a transaction: decides the call. A unique violation: somebody else has decided it meanwhile.
--   {"answer": "recorded"}      {"answer": "ended"}  the body has ended the transaction that was begun with p_marker
CREATE OR REPLACE FUNCTION record_completion(
  p_marker text, p_installation uuid, p_workflow_id text, p_seq integer, p_generation bigint, p_epoch bigint,
  p_output text, p_error text, p_events text
)
RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  IF current_setting('holdfast.transaction', true) IS DISTINCT FROM p_marker THEN
    RETURN '{"answer":"ended"}';
  END IF;
  INSERT INTO completion (installation, workflow_id, seq, generation, output, error, events, epoch)
  VALUES (p_installation, p_workflow_id, p_seq, p_generation, p_output, p_error, p_events, p_epoch);
  RETURN '{"answer":"recorded"}';
END
$$;

-- Forgets what was decided longer ago than that, and returns how many rows that were. To be run by hand, or by a job of yours, with
-- an age that no workflow spends between such a commit and its record: usually moments, but as long as a workflow is
-- blocked, or nobody runs it. What is forgotten too early is done again.
CREATE OR REPLACE FUNCTION forget_completions(p_older_than interval)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_forgotten bigint;
BEGIN
  DELETE FROM completion c WHERE c.completed_at < clock_timestamp() - p_older_than;
  GET DIAGNOSTICS v_forgotten = ROW_COUNT;
  DELETE FROM completion_owner o WHERE o.entered_at < clock_timestamp() - p_older_than;
  RETURN v_forgotten;
END
$$;

-- Which form of all this is here; read from the catalogue by the library, which replaces an older one and refuses a newer one. To be
-- raised, together with COMPLETION_VERSION in completion-install.ts, with each change of this file.
CREATE OR REPLACE FUNCTION completion_version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
