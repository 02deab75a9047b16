-- One page of everything that waits for a person, workflows and events of the outbox alike, the oldest first: by when the workflow
-- was created, or the event was added. It begins after the entry that p_after_us (microseconds since 1970) and p_after_id name (null:
-- with the oldest). p_codes null: all.
--
-- An entry is a workflow (event_id null) or an event, whose code is UNDELIVERABLE. found_at is when it came to that: a workflow that
-- waits is not written to.
-- The settings pin the one plan that is right for every size of the tables: along an index, as far as the page goes.
CREATE OR REPLACE FUNCTION list_attention(p_codes text[], p_after_us bigint, p_after_id text, p_limit integer)
RETURNS TABLE (
  code text, detail text, found_at timestamptz, workflow_id text, name text, status text, event_id uuid, topic text,
  event_key text, attempts integer, entry_us bigint, entry_id text, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
  SELECT a.code, a.detail, a.found_at, a.workflow_id, a.name, a.status, a.event_id, a.topic, a.event_key, a.attempts,
         (extract(epoch FROM a.began_at) * 1000000)::bigint, a.entry_id, a.following IS NOT NULL
    FROM (
      SELECT u.*, lead(u.entry_id) OVER (ORDER BY u.began_at, u.entry_id COLLATE "C") AS following
        FROM (
          (SELECT s.attention AS code, s.attention_detail AS detail, s.updated_at AS found_at, s.workflow_id, s.name, s.status,
                  NULL::uuid AS event_id, NULL AS topic, NULL AS event_key, s.attempts, s.created_at AS began_at,
                  'workflow ' || s.workflow_id AS entry_id
             FROM workflow_status s
            WHERE s.attention IS NOT NULL AND (p_codes IS NULL OR s.attention = ANY (p_codes))
              AND (p_after_us IS NULL
                   OR s.created_at >= 'epoch'::timestamptz + p_after_us * interval '1 microsecond'
                  AND (s.created_at, 'workflow ' || s.workflow_id)
                      > ('epoch'::timestamptz + p_after_us * interval '1 microsecond', p_after_id COLLATE "C"))
            ORDER BY s.created_at, s.workflow_id LIMIT p_limit + 1)
          UNION ALL
          (SELECT 'UNDELIVERABLE', o.reason, o.died_at, o.workflow_id, NULL, NULL, o.event_id, o.topic, o.event_key, o.attempts,
                  o.added_at, 'event ' || o.event_id
             FROM outbox_event o
            WHERE o.died_at IS NOT NULL AND (p_codes IS NULL OR 'UNDELIVERABLE' = ANY (p_codes))
              AND (p_after_us IS NULL
                   OR o.added_at >= 'epoch'::timestamptz + p_after_us * interval '1 microsecond'
                  AND (o.added_at, 'event ' || o.event_id)
                      > ('epoch'::timestamptz + p_after_us * interval '1 microsecond', p_after_id COLLATE "C"))
            ORDER BY o.added_at, o.event_id LIMIT p_limit + 1)
        ) u
    ) a
   ORDER BY a.began_at, a.entry_id COLLATE "C"
   LIMIT p_limit
$$;
