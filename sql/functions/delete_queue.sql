-- Deletes a queue. result:
--   done
--   missing    there is no queue of this name
--   not_empty  workflows that have not ended are in it, counted in workflows; with p_release done: they go on without limits
--   busy       somebody is just enqueuing into it, or is claiming from it: ask again
--
-- Whoever enqueues shares a lock on the name until the end of the transaction, before looking whether there is such a queue; this
-- takes it alone, without waiting. So nothing is enqueued unseen. What comes back into a queue that is gone (resumed, rewound,
-- forked) is not limited either, and not stuck.
CREATE OR REPLACE FUNCTION delete_queue(p_name text, p_release boolean, OUT result text, OUT workflows bigint)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM FROM queue q WHERE q.name = p_name;
  IF NOT FOUND THEN
    result := 'missing';
    RETURN;
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended(concat_ws('.', current_schema(), 'queue in use', p_name), 0)) THEN
    result := 'busy';
    RETURN;
  END IF;
  PERFORM FROM queue q WHERE q.name = p_name FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    result := 'busy';
    RETURN;
  END IF;
  SELECT l.waiting + l.delayed + l.running + l.blocked INTO workflows FROM list_queues(p_name, true) l;
  IF workflows > 0 AND NOT p_release THEN
    result := 'not_empty';
    RETURN;
  END IF;
  DELETE FROM queue_start t WHERE t.queue = p_name;
  DELETE FROM queue q WHERE q.name = p_name;
  IF workflows > 0 THEN
    PERFORM pg_notify(current_schema() || '.work', '');
  END IF;
  result := 'done';
END
$$;
