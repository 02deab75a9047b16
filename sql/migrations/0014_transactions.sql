-- Transactions in databases of the application: how their completions there are told from those of another Holdfast, and of an
-- earlier life of the same call.
-- compatible-with: 1

-- One row: this Holdfast, among those that may use the same database of the application.
CREATE TABLE installation (
  only_row        boolean NOT NULL DEFAULT true,
  installation_id uuid NOT NULL DEFAULT gen_random_uuid(),
  PRIMARY KEY (only_row),
  CONSTRAINT installation_is_one CHECK (only_row)
);
INSERT INTO installation DEFAULT VALUES;

-- Calls from from_seq on belong to this generation, up to the next row's. Only of workflows that have run a transaction in another
-- database; later generations have higher numbers, over rewinds, and over the deletion of a workflow and a new one of its ID.
CREATE TABLE transaction_generation (
  workflow_id text COLLATE "C" NOT NULL,
  from_seq    integer NOT NULL,
  generation  bigint NOT NULL,
  PRIMARY KEY (workflow_id, from_seq)
);
CREATE SEQUENCE transaction_generation_number;
