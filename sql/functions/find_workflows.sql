-- One page of the workflows that fit all the filters (null: any), by (created_at, workflow_id). A page begins after the row
-- that p_after_us (microseconds since 1970, the column's whole precision) and p_after_id name, so pages neither repeat nor
-- skip a row while others are added, however many have the same time stamp.
--
-- p_id_prefix is literal. created_us and the ID are what the next page begins after, and has_more says whether there is one.
-- With p_payload a page ends before the row with which it would carry more than p_payload_bytes, but has at least one.
--
-- Dynamic, since the order cannot be a parameter, and since each set of filters wants a plan of its own: a value that is
-- known when the statement is planned makes the filters that were not given disappear from it. The time of creation is in two
-- tables, each with its index: of what needs a person, by the workflow's row; of all, by the input's, which does not change.
CREATE OR REPLACE FUNCTION find_workflows(
  p_statuses text[], p_names text[], p_id_prefix text, p_executor_id text, p_parent_id text, p_app_version text, p_queue text, p_partition_key text,
  p_attention boolean, p_created_from timestamptz, p_created_before timestamptz,
  p_newest_first boolean, p_after_us bigint, p_after_id text, p_limit integer, p_payload boolean, p_payload_bytes bigint
)
RETURNS TABLE (
  workflow workflow_status, created_us bigint, input text, output text, error text, has_more boolean
)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY EXECUTE format($query$
    WITH page AS (
      SELECT s AS workflow, row_number() OVER (ORDER BY %3$s.created_at %1$s, %3$s.workflow_id %1$s) AS place
        FROM workflow_status s
        JOIN workflow_input i ON i.workflow_id = s.workflow_id
       WHERE ($1 IS NULL OR s.status = ANY ($1))
         AND ($2 IS NULL OR s.name = ANY ($2))
         AND ($3 IS NULL OR s.workflow_id ^@ $3)
         AND ($4 IS NULL OR s.executor_id = $4)
         AND ($5 IS NULL OR s.parent_id = $5)
         AND ($6 IS NULL OR s.app_version = $6)
         AND ($7 IS NULL OR (s.attention IS NOT NULL) = $7)
         AND ($8 IS NULL OR %3$s.created_at >= $8)
         AND ($9 IS NULL OR %3$s.created_at < $9)
         AND ($15 IS NULL OR s.queue = $15)
         AND ($16 IS NULL OR s.partition_key = $16)
         AND ($10 IS NULL OR (%3$s.created_at, %3$s.workflow_id) %2$s ($10, $11))
       ORDER BY %3$s.created_at %1$s, %3$s.workflow_id %1$s
       LIMIT $12 + 1
    ), filled AS (
      SELECT p.workflow, p.place, i.input, o.output, o.error,
             lead(p.place) OVER by_place IS NOT NULL AS has_more,
             sum(coalesce(octet_length(i.input), 0) + coalesce(octet_length(o.output), 0)
                 + coalesce(octet_length(o.error), 0)) OVER by_place AS bytes
        FROM page p
        LEFT JOIN workflow_input i ON $13 AND i.workflow_id = (p.workflow).workflow_id
        LEFT JOIN workflow_outcome o ON $13 AND o.workflow_id = (p.workflow).workflow_id
      WINDOW by_place AS (ORDER BY p.place)
    )
    SELECT f.workflow, (extract(epoch FROM (f.workflow).created_at) * 1000000)::bigint, f.input, f.output, f.error, f.has_more
      FROM filled f
     WHERE f.place <= $12 AND (f.place = 1 OR f.bytes <= $14)
     ORDER BY f.place
    $query$, CASE WHEN p_newest_first THEN 'DESC' ELSE 'ASC' END, CASE WHEN p_newest_first THEN '<' ELSE '>' END,
    CASE WHEN p_attention THEN 's' ELSE 'i' END)
  USING p_statuses, p_names, p_id_prefix, p_executor_id, p_parent_id, p_app_version, p_attention, p_created_from,
        p_created_before, 'epoch'::timestamptz + p_after_us * interval '1 microsecond', p_after_id, p_limit, p_payload,
        p_payload_bytes, p_queue, p_partition_key;
END
$$;
