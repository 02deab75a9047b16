-- Whether a request of this key (an update, whose reply is the event of the same key) was received by a run that has continued as
-- new since: the code that would reply is gone. To be asked where the event is not set, and of keys of updates only: read_events of
-- 10,000 others takes 174 ms if it is asked of each, and 47 ms if not. Numbers go on over runs, so what an earlier one received has a lower
-- one than the first of this run.
CREATE OR REPLACE FUNCTION is_left_behind(p_workflow_id text, p_key text) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT EXISTS (
    SELECT FROM message m JOIN workflow_status s ON s.workflow_id = m.workflow_id
     WHERE m.workflow_id = p_workflow_id AND m.message_id = p_key AND m.consumed_seq < s.first_seq)
$$;
