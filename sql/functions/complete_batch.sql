-- Records outcomes and ends the executions that own them. Returns one row per item whose outcome is NOT recorded under its
-- nonce when the call ends; see classify_refusal. The shape is that of checkpoint_batch.
--
-- An execution that leaves steps behind whose intents are recorded says so with the attention OUTCOME_UNKNOWN; whether their results
-- have been recorded in the end is seen here.
CREATE OR REPLACE FUNCTION complete_batch(
  p_workflow_ids text[], p_tokens uuid[], p_versions bigint[], p_nonces uuid[],
  p_statuses text[], p_outputs text[], p_errors text[], p_attentions text[]
)
RETURNS TABLE (item integer, answer text, found_status text, found_epoch bigint, found_version bigint, found_detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_memoize = off SET enable_bitmapscan = off SET lock_timeout = '50ms'
AS $$
DECLARE
  v_now     timestamptz := clock();
  v_written integer := 0;
  v_others  integer := 0;
BEGIN
  IF p_attentions IS NULL OR cardinality(array_remove(p_attentions, NULL)) = 0 THEN
    WITH ended AS (
      UPDATE workflow_status s
         SET status = p_statuses[r.place], owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
             completed_at = v_now, attention = NULL, attention_detail = NULL
        FROM generate_series(1, cardinality(p_workflow_ids)) AS r (place)
       WHERE s.workflow_id = ANY (ARRAY[p_workflow_ids[r.place]])
         AND s.owner_token = p_tokens[r.place] AND s.record_version = p_versions[r.place]
         AND (s.xmax = '0' OR s.xmax = s.xmin)
      RETURNING r.place, s.epoch
    )
    INSERT INTO workflow_outcome (workflow_id, status, output, error, epoch, nonce, recorded_at)
    SELECT p_workflow_ids[e.place], p_statuses[e.place], p_outputs[e.place], p_errors[e.place], e.epoch, p_nonces[e.place], v_now
      FROM ended e;
    GET DIAGNOSTICS v_written = ROW_COUNT;
  END IF;

  IF v_written < cardinality(p_workflow_ids) THEN
    WITH locked AS MATERIALIZED (
      SELECT r.*, s.epoch, s.ctid AS place
        FROM unnest(p_workflow_ids, p_tokens, p_versions, p_nonces, p_statuses, p_outputs, p_errors, p_attentions)
          AS r (workflow_id, token, version, nonce, new_status, output, error, new_attention)
        JOIN workflow_status s ON s.workflow_id = r.workflow_id
       WHERE s.owner_token = r.token AND s.record_version = r.version
       ORDER BY s.workflow_id
         FOR NO KEY UPDATE OF s SKIP LOCKED
    ), ended AS (
      UPDATE workflow_status s
         SET status = l.new_status, owner_token = NULL, record_version = l.version + 1, updated_at = v_now,
             completed_at = v_now,
             attention = CASE WHEN l.new_attention IS DISTINCT FROM 'OUTCOME_UNKNOWN' OR l.unknown IS NOT NULL
                              THEN l.new_attention END,
             attention_detail = l.unknown
        FROM (
          SELECT k.*, CASE WHEN k.new_attention = 'OUTCOME_UNKNOWN' THEN unknown_outcomes(k.workflow_id) END AS unknown
            FROM locked k
        ) l
       WHERE s.ctid = l.place
      RETURNING l.workflow_id, l.new_status, l.output, l.error, l.epoch, l.nonce
    )
    INSERT INTO workflow_outcome (workflow_id, status, output, error, epoch, nonce, recorded_at)
    SELECT e.workflow_id, e.new_status, e.output, e.error, e.epoch, e.nonce, v_now FROM ended e;
    GET DIAGNOSTICS v_others = ROW_COUNT;
    v_written := v_written + v_others;
  END IF;
  IF v_written > 0 THEN
    -- Of a refused neighbour as well, which does no harm: who is woken in vain is suspended again.
    PERFORM wake_waiters(p_workflow_ids);
  END IF;

  IF v_written < cardinality(p_workflow_ids) THEN
    RETURN QUERY
    SELECT r.position::integer, c.*
      FROM unnest(p_workflow_ids, p_tokens, p_versions, p_nonces) WITH ORDINALITY
             AS r (workflow_id, token, version, nonce, position)
      CROSS JOIN LATERAL classify_refusal(r.workflow_id, r.token, r.version, NULL) c
     WHERE NOT EXISTS (SELECT FROM workflow_outcome x WHERE x.workflow_id = r.workflow_id AND x.nonce = r.nonce);
  END IF;
END
$$;
