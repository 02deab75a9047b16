-- The app versions for which something waits, and which no executor with a live lease has: how many workflows, p_limit at most
-- (counting stops there), and since when one of them has waited. A workflow whose owner's lease has expired waits as well.
CREATE OR REPLACE FUNCTION unserved_versions(p_limit integer)
RETURNS TABLE (app_version text, workflows integer, since timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
  v_now      timestamptz := clock();
  v_version  text;
  v_versions text[];
BEGIN
  -- What dead executors left: one look an executor, as in claim_work.
  SELECT coalesce(array_agg(DISTINCT r.app_version), '{}') INTO v_versions
    FROM executor e
   CROSS JOIN LATERAL (
     SELECT s.app_version
       FROM workflow_status s
      WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
      LIMIT p_limit
   ) r
   WHERE e.lease_until <= v_now;
  LOOP
    SELECT s.app_version INTO v_version
      FROM workflow_status s
     WHERE s.status IN ('ENQUEUED', 'DELAYED', 'SUSPENDED') AND NOT s.any_version
       AND (s.epoch > 0 OR s.forked_from IS NOT NULL)
       -- Nothing is smaller than the empty text, which is a version like others.
       AND (v_version IS NULL OR s.app_version > v_version)
     ORDER BY s.app_version
     LIMIT 1;
    EXIT WHEN NOT FOUND;
    v_versions := v_versions || v_version;
  END LOOP;

  FOR v_version IN SELECT DISTINCT v.version FROM unnest(v_versions) AS v (version) ORDER BY v.version LOOP
    PERFORM FROM executor e WHERE e.app_version = v_version AND e.lease_until > v_now;
    CONTINUE WHEN FOUND;
    SELECT v_version, count(*), min(w.updated_at) INTO app_version, workflows, since
      FROM (
        (SELECT s.updated_at
           FROM workflow_status s
          WHERE s.status IN ('ENQUEUED', 'DELAYED', 'SUSPENDED') AND NOT s.any_version
            AND (s.epoch > 0 OR s.forked_from IS NOT NULL) AND s.app_version = v_version
          LIMIT p_limit)
        UNION ALL
        (SELECT r.updated_at
           FROM executor e
          CROSS JOIN LATERAL (
            SELECT s.updated_at
              FROM workflow_status s
             WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
               AND s.app_version = v_version
             LIMIT p_limit
          ) r
          WHERE e.lease_until <= v_now
          LIMIT p_limit)
        LIMIT p_limit
      ) w;
    RETURN NEXT;
  END LOOP;
END
$$;
