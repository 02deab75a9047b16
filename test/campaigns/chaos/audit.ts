import type pg from 'pg';

/**
 * Triggers that write down every change of a record, in the transaction that makes it: for the campaign's judges alone. The lock on the
 * workflow's row orders them. `app` is the application name of the connection, by which each process is known.
 */
const AUDIT = `
CREATE SCHEMA chaos;
CREATE TABLE chaos.change (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workflow_id text NOT NULL, verb text NOT NULL,
  version_before bigint, version bigint, epoch_before bigint, epoch bigint, token_before uuid, token uuid,
  status_before text, status text, executor_id text, app text NOT NULL, at timestamptz NOT NULL
);
CREATE TABLE chaos.written (
  n bigint NOT NULL, workflow_id text NOT NULL, relation text NOT NULL, verb text NOT NULL,
  seq int, epoch bigint, app text NOT NULL
);
CREATE TABLE chaos.account (id int PRIMARY KEY, cents bigint NOT NULL);
INSERT INTO chaos.account SELECT n, 0 FROM generate_series(0, 15) n;
CREATE TABLE chaos.payment (
  workflow_id text NOT NULL, step text NOT NULL, epoch int NOT NULL, account int NOT NULL, run text NOT NULL
);

CREATE FUNCTION chaos.note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.change (workflow_id, verb, version_before, version, epoch_before, epoch, token_before, token,
                            status_before, status, executor_id, app, at)
  VALUES (coalesce(NEW.workflow_id, OLD.workflow_id), TG_OP, OLD.record_version, NEW.record_version, OLD.epoch, NEW.epoch,
          OLD.owner_token, NEW.owner_token, OLD.status, NEW.status, coalesce(NEW.executor_id, OLD.executor_id),
          current_setting('application_name'), clock_timestamp());
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_change AFTER INSERT OR UPDATE OR DELETE ON holdfast.workflow_status
  FOR EACH ROW EXECUTE FUNCTION chaos.note_change();

CREATE FUNCTION chaos.note_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.written
  VALUES (nextval('chaos.change_n_seq'), coalesce(NEW.workflow_id, OLD.workflow_id), TG_TABLE_NAME, TG_OP,
          coalesce(NEW.seq, OLD.seq), coalesce(NEW.epoch, OLD.epoch), current_setting('application_name'));
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_written AFTER INSERT OR UPDATE OR DELETE ON holdfast.step_result
  FOR EACH ROW EXECUTE FUNCTION chaos.note_step();

CREATE FUNCTION chaos.note_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.written
  VALUES (nextval('chaos.change_n_seq'), coalesce(NEW.workflow_id, OLD.workflow_id), TG_TABLE_NAME, TG_OP, NULL,
          coalesce(NEW.epoch, OLD.epoch), current_setting('application_name'));
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_written AFTER INSERT OR UPDATE OR DELETE ON holdfast.workflow_outcome
  FOR EACH ROW EXECUTE FUNCTION chaos.note_outcome();
`;

export async function installAudit(sql: pg.Client): Promise<void> {
  await sql.query(AUDIT);
}
