-- How the fleet is doing, a row a number. Counting stops at p_limit, so that a long line costs no more than a short one.
--
--   executors   live executors, by app version (name)
--   waiting     workflows that could be claimed, by queue (name; null: in none)
--   running     workflows that hold a slot, by queue
--   delayed     workflows that wait for a time or are suspended, of all queues and of none
--   attention   workflows that wait for a person
--   outbox      events of the outbox that are to be delivered
--   dead        events of the outbox that wait for a person
--   lag         age of the oldest event that is to be delivered, in seconds; no row: there is none
CREATE OR REPLACE FUNCTION fleet_overview(p_limit integer) RETURNS TABLE (kind text, name text, amount integer)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
AS $$
  SELECT 'executors', e.app_version, count(*)::integer
    FROM executor e WHERE e.lease_until > clock() GROUP BY e.app_version
  UNION ALL
  SELECT 'waiting', NULL, count(*)::integer
    FROM (SELECT FROM workflow_status s WHERE s.status = 'ENQUEUED' AND s.queue IS NULL LIMIT p_limit) c
  UNION ALL
  SELECT 'waiting', q.name, c.amount::integer
    FROM queue q
   CROSS JOIN LATERAL (
     SELECT count(*) AS amount
       FROM (SELECT FROM workflow_status s WHERE s.status = 'ENQUEUED' AND s.queue = q.name LIMIT p_limit) s
   ) c
  UNION ALL
  SELECT 'running', q.name, held_slots(q.name, p_limit) FROM queue q
  UNION ALL
  SELECT 'delayed', NULL, count(*)::integer
    FROM (SELECT FROM workflow_status s WHERE s.status IN ('DELAYED', 'SUSPENDED') LIMIT p_limit) c
  UNION ALL
  SELECT 'attention', NULL, count(*)::integer
    FROM (SELECT FROM workflow_status s WHERE s.attention IS NOT NULL LIMIT p_limit) c
  UNION ALL
  SELECT 'outbox', NULL, count(*)::integer
    FROM (SELECT FROM outbox_event o WHERE o.died_at IS NULL LIMIT p_limit) c
  UNION ALL
  SELECT 'dead', NULL, count(*)::integer
    FROM (SELECT FROM outbox_event o WHERE o.died_at IS NOT NULL LIMIT p_limit) c
  UNION ALL
  SELECT 'lag', NULL, greatest(0, extract(epoch FROM clock() - c.added_at))::integer
    FROM (SELECT o.added_at FROM outbox_event o WHERE o.died_at IS NULL ORDER BY o.position LIMIT 1) c
$$;
