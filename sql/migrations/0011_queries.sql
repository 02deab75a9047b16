-- Questions about the state of running workflows, from one process to the one that runs the workflow.
-- compatible-with: 1
--
-- Not part of any record: a row lives as long as somebody waits for the answer.
CREATE TABLE query_request (
  workflow_id text COLLATE "C" NOT NULL,
  request_id  uuid NOT NULL,
  name        text COLLATE "C" NOT NULL,
  arguments   text NOT NULL,
  asked_at    timestamptz NOT NULL,
  -- Nobody waits for the answer after that.
  expires_at  timestamptz NOT NULL,
  reply       text,
  error       text,
  PRIMARY KEY (workflow_id, request_id),
  CONSTRAINT reply_or_error CHECK (reply IS NULL OR error IS NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX query_request_expiry ON query_request (expires_at);
