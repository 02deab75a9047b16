-- The first schedules by their next tick, due or not, that come after (p_after_ms, p_after_name); null: from the beginning. Those
-- that are not due tell how long to wait. One look into an index, however many schedules there are.
CREATE OR REPLACE FUNCTION due_schedules(p_after_ms bigint, p_after_name text, p_limit integer)
RETURNS TABLE (
  name text, revision bigint, cron text, time_zone text, catch_up text, next_ms double precision, now_ms double precision
)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off
AS $$
  SELECT s.name, s.revision, s.cron, s.time_zone, s.catch_up, (extract(epoch FROM s.next_fire_at) * 1000)::double precision,
         (extract(epoch FROM clock()) * 1000)::double precision
    FROM schedule s
   WHERE NOT s.paused
     AND (p_after_ms IS NULL
          OR (s.next_fire_at, s.name) > ('epoch'::timestamptz + p_after_ms * interval '1 ms', p_after_name COLLATE "C"))
   ORDER BY s.next_fire_at, s.name
   LIMIT p_limit
$$;
