-- Makes the transaction wait, at its end, until the synchronous standbys have everything that this server shows. Where there
-- are none it does nothing.
--
-- For answers that are final and come from reading alone. With synchronous replication a commit is acknowledged when a
-- standby has it, but a read asks nobody: a primary that was replaced and does not know it, because it was cut off or has come
-- back, answers from what it has. It has no standby any more, so a transaction that writes does not end there. This makes
-- one of a read: the message is one record in the log, about 50 bytes, which nobody reads.
--
-- No row is written, so it works for every role and in read-only transactions.
CREATE OR REPLACE FUNCTION await_standbys() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  IF current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() THEN
    PERFORM pg_logical_emit_message(true, 'holdfast', '');
  END IF;
END
$$;
