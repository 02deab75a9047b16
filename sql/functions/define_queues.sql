-- Creates queues, or replaces their settings; whether they are paused stays. p_queues is a JSON array of objects whose
-- keys are columns of queue; a limit that is missing or null is none. With p_is_declaration (what a launch does) a queue that exists is only
-- changed when the declaration is another than the one that was applied last, so that edits outlive restarts.
CREATE OR REPLACE FUNCTION define_queues(p_queues jsonb, p_is_declaration boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  v_now timestamptz := clock();
BEGIN
  INSERT INTO queue AS q (name, concurrency, executor_concurrency, key_concurrency, rate_limit, rate_period_ms,
                          key_rate_limit, key_rate_period_ms, declared, created_at, updated_at)
  SELECT r.name, r.concurrency, r.executor_concurrency, r.key_concurrency, r.rate_limit, r.rate_period_ms,
         r.key_rate_limit, r.key_rate_period_ms, CASE WHEN p_is_declaration THEN d.definition END, v_now, v_now
    FROM jsonb_array_elements(p_queues) AS d (definition)
   CROSS JOIN LATERAL jsonb_populate_record(NULL::queue, d.definition) r
   ORDER BY r.name
  ON CONFLICT (name) DO UPDATE
    SET concurrency = EXCLUDED.concurrency, executor_concurrency = EXCLUDED.executor_concurrency,
        key_concurrency = EXCLUDED.key_concurrency, rate_limit = EXCLUDED.rate_limit,
        rate_period_ms = EXCLUDED.rate_period_ms, key_rate_limit = EXCLUDED.key_rate_limit,
        key_rate_period_ms = EXCLUDED.key_rate_period_ms, declared = coalesce(EXCLUDED.declared, q.declared),
        updated_at = v_now
    WHERE NOT p_is_declaration OR q.declared IS DISTINCT FROM EXCLUDED.declared;
  IF FOUND THEN
    PERFORM pg_notify(current_schema() || '.work', '');
  END IF;
END
$$;
