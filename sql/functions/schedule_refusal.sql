-- Why a schedule cannot have this queue, or null:
--   no_queue        there is no such queue
--   no_turns        its runs are to wait for each other there, under one key, and the queue lets several of a key run
CREATE OR REPLACE FUNCTION schedule_refusal(p_queue text, p_overlap text) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT CASE
    WHEN p_queue IS NULL THEN NULL
    WHEN NOT EXISTS (SELECT FROM queue q WHERE q.name = p_queue) THEN 'no_queue'
    WHEN p_overlap = 'queue' AND NOT EXISTS (
      SELECT FROM queue q WHERE q.name = p_queue AND 1 IN (q.key_concurrency, q.concurrency)) THEN 'no_turns' END
$$;
