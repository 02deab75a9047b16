-- Adds events inside the caller's own transaction: they are there exactly if that commits, and relays are told then. For p_items see
-- add_events.
CREATE OR REPLACE FUNCTION add_events_in_transaction(p_items json) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM add_events(p_items);
  PERFORM pg_notify(current_schema() || '.outbox', '');
END
$$;
