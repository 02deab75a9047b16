-- Takes workflows over: those whose owner's lease has expired, those whose time has come, and those given back or resumed.
-- Every claim makes a new token and the next epoch, so whatever execution had the workflow before is fenced by its next
-- write. Two claims of one workflow are one: the row lock decides, and the loser skips it.
--
-- An executor claims only names it knows and only its own app version; and nothing at all once it has been superseded or
-- its own lease has expired. A workflow over its attempt limit becomes DEAD_LETTER instead, with p_dead_letter_error as its
-- outcome. p_only restricts the claim to these IDs; null means any.
--
-- The claim of libraries of schema version 1, which know no limits and number calls from 0: it leaves to claim_work what belongs
-- to a queue, and what has continued as new.
--
-- jit: executor has no index to look for leases by, and the cost that a disabled sequential scan is given makes the server
-- compile the query, for 120 ms at every claim.
CREATE OR REPLACE FUNCTION claim_workflows(
  p_executor_id text, p_incarnation bigint, p_app_version text, p_names text[], p_limit integer, p_only text[],
  p_dead_letter_error text
)
RETURNS TABLE (
  workflow_id text, name text, instance text, token uuid, epoch bigint, record_version bigint, attempts integer,
  reason text, deadline_in_ms double precision, input text, attributes text, parent_id text
)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_now       timestamptz := clock();
  v_recovered text[];
  v_due       text[];
  v_ids       text[];
  v_dead      text[];
BEGIN
  PERFORM FROM executor e
    WHERE e.executor_id = p_executor_id AND e.incarnation = p_incarnation AND e.lease_until > v_now;
  IF NOT FOUND THEN
    RETURN;
  END IF;

  -- Executor by executor, since a plain join may start from all rows that are owned: 200 ms with 100,000 of them and no
  -- expired lease, against 0.1 ms. LATERAL with LIMIT leaves the planner only this order.
  SELECT array_agg(c.workflow_id) INTO v_recovered FROM (
    SELECT r.workflow_id
      FROM executor e
     CROSS JOIN LATERAL (
       SELECT s.workflow_id
         FROM workflow_status s
        WHERE s.executor_id = e.executor_id AND s.incarnation = e.incarnation AND s.status = 'PENDING'
          AND s.name = ANY (p_names) AND s.app_version = p_app_version AND s.queue IS NULL AND s.first_seq = 0
          AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
        LIMIT p_limit
          FOR NO KEY UPDATE SKIP LOCKED
     ) r
     WHERE e.lease_until <= v_now
     LIMIT p_limit
  ) c;

  SELECT array_agg(c.workflow_id) INTO v_due FROM (
    SELECT s.workflow_id
      FROM workflow_status s
     WHERE s.status IN ('DELAYED', 'SUSPENDED') AND s.wake_at <= v_now
       AND s.name = ANY (p_names) AND s.app_version = p_app_version AND s.queue IS NULL AND s.first_seq = 0
       AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
     ORDER BY s.wake_at
     LIMIT p_limit - coalesce(cardinality(v_recovered), 0)
       FOR NO KEY UPDATE OF s SKIP LOCKED
  ) c;

  SELECT array_agg(c.workflow_id) INTO v_ids FROM (
    SELECT s.workflow_id
      FROM workflow_status s
     WHERE s.status = 'ENQUEUED' AND s.queue IS NULL AND s.name = ANY (p_names) AND s.app_version = p_app_version
       AND s.first_seq = 0
       AND (p_only IS NULL OR s.workflow_id = ANY (p_only))
     ORDER BY s.created_at, s.workflow_id
     LIMIT p_limit - coalesce(cardinality(v_recovered), 0) - coalesce(cardinality(v_due), 0)
       FOR NO KEY UPDATE OF s SKIP LOCKED
  ) c;
  v_ids := v_recovered || v_due || v_ids;
  IF v_ids IS NULL THEN
    RETURN;
  END IF;

  PERFORM end_ownership(v_recovered, 'taken over', NULL);

  WITH buried AS (
    UPDATE workflow_status s
       SET status = 'DEAD_LETTER', owner_token = NULL, record_version = s.record_version + 1, updated_at = v_now,
           completed_at = v_now, wake_at = NULL, attention = 'DEAD_LETTER',
           attention_detail = format('%s of %s attempts used', s.attempts, s.max_attempts)
      FROM unnest(v_ids) AS r (workflow_id)
     WHERE s.workflow_id = r.workflow_id AND s.attempts >= s.max_attempts
    RETURNING s.workflow_id, s.epoch
  ), recorded AS (
    INSERT INTO workflow_outcome (workflow_id, status, error, epoch, nonce, recorded_at)
    SELECT b.workflow_id, 'DEAD_LETTER', p_dead_letter_error, b.epoch, gen_random_uuid(), v_now FROM buried b
    RETURNING workflow_outcome.workflow_id
  )
  SELECT array_agg(d.workflow_id) INTO v_dead FROM recorded d;
  IF v_dead IS NOT NULL THEN
    PERFORM wake_waiters(v_dead);
  END IF;

  IF cardinality(v_due) > 0 THEN
    DELETE FROM workflow_wait w WHERE w.waiter_id = ANY (v_due);
  END IF;

  RETURN QUERY
  WITH taken AS (
    UPDATE workflow_status s
       SET status = 'PENDING', owner_token = gen_random_uuid(), epoch = s.epoch + 1,
           record_version = s.record_version + 1, attempts = s.attempts + 1, executor_id = p_executor_id,
           incarnation = p_incarnation, wake_at = NULL, updated_at = v_now, started_at = coalesce(s.started_at, v_now),
           owned_at = v_now,
           owned_reason = CASE WHEN s.workflow_id = ANY (v_recovered) THEN 'recovered' ELSE 'claimed' END
      FROM unnest(v_ids) AS r (workflow_id)
     WHERE s.workflow_id = r.workflow_id AND (v_dead IS NULL OR s.workflow_id <> ALL (v_dead))
    RETURNING s.*
  )
  SELECT t.workflow_id, t.name, t.instance, t.owner_token, t.epoch, t.record_version, t.attempts,
         t.owned_reason,
         (extract(epoch FROM t.deadline - v_now) * 1000)::double precision,
         i.input, t.attributes::text, t.parent_id
    FROM taken t
    LEFT JOIN workflow_input i ON i.workflow_id = t.workflow_id;
END
$$;
