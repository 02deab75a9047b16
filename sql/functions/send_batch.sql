-- Sends messages in a transaction of its own; see send_items for arguments and answers. Whoever calls it tells the receivers'
-- executors by a notification on <schema>.message afterwards: a NOTIFY in here would take a lock that all commits share.
--
-- lock_timeout: a message ID that an open transaction is just sending makes the whole batch wait. The caller then finds the
-- item by splitting, and goes on without it.
CREATE OR REPLACE FUNCTION send_batch(p_workflow_ids text[], p_message_ids text[], p_topics text[], p_payloads text[])
RETURNS TABLE (item integer, answer text, found_status text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET lock_timeout = '50ms'
AS $$
BEGIN
  RETURN QUERY SELECT s.* FROM send_items(p_workflow_ids, p_message_ids, p_topics, p_payloads, NULL) s;
END
$$;
