-- One page of the events that are in the outbox, in the order in which they were added: all, or only the dead, or only the others
-- (p_dead); of a topic, or of all (null). It begins after the position p_after (null: with the first).
-- With p_payload a page ends before the row with which it would carry more than p_payload_bytes, but has at least one.
-- The settings pin the one plan that is right for every size of the table: along the index of positions, as far as the page goes.
CREATE OR REPLACE FUNCTION list_events(
  p_dead boolean, p_topic text, p_after bigint, p_limit integer, p_payload boolean, p_payload_bytes bigint
)
RETURNS TABLE (
  event_id uuid, topic text, event_key text, state text, workflow_id text, attempts integer, due_at timestamptz, reason text,
  added_at timestamptz, died_at timestamptz, payload text, error text, event_position bigint, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
  WITH page AS (
    SELECT u.*, row_number() OVER (ORDER BY u.position) AS place
      FROM (
        (SELECT o.* FROM outbox_event o
          WHERE o.died_at IS NOT NULL AND p_dead IS NOT FALSE AND (p_topic IS NULL OR o.topic = p_topic)
            AND o.position > coalesce(p_after, -1)
          ORDER BY o.position LIMIT p_limit + 1)
        UNION ALL
        (SELECT o.* FROM outbox_event o
          WHERE o.died_at IS NULL AND p_dead IS NOT TRUE AND (p_topic IS NULL OR o.topic = p_topic)
            AND o.position > coalesce(p_after, -1)
          ORDER BY o.position LIMIT p_limit + 1)
      ) u
  ), filled AS (
    SELECT p.*, lead(p.place) OVER by_place IS NOT NULL AS has_more,
           sum(coalesce(octet_length(p.payload), 0) + coalesce(octet_length(p.error), 0)) OVER by_place AS bytes
      FROM page p
    WINDOW by_place AS (ORDER BY p.place)
  )
  SELECT f.event_id, f.topic, f.event_key, f.state, f.workflow_id, f.attempts, f.due_at, f.reason, f.added_at, f.died_at,
         CASE WHEN p_payload THEN f.payload END, CASE WHEN p_payload THEN f.error END, f.position, f.has_more
    FROM filled f
   WHERE f.place <= p_limit AND (f.place = 1 OR NOT p_payload OR f.bytes <= p_payload_bytes)
   ORDER BY f.place
$$;
