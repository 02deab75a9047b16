-- The first p_take workflows in the line of one queue, priority and key that an executor of this app version can run, locked;
-- what others have locked is skipped. p_except: those that this transaction has locked already. p_front: where in the table
-- the first of the line stands, as far as is known; see waiting_fronts.
--
-- Names and versions are looked up one by one in the index, and only those that can be run are read: however long the
-- backlog of a name that this executor does not know, it costs one look. Each is read from that look's finding on: what has
-- come in front of it since is the next claim's.
CREATE OR REPLACE FUNCTION first_in_line(
  p_queue text, p_priority integer, p_key text, p_app_version text, p_names text[], p_except text[], p_take integer,
  p_front tid
)
RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  -- As the index has it: the empty text is what runs on any version.
  v_name     text := '';
  v_version  text := '';
  v_from     timestamptz;
  v_names    text[] := '{}';
  v_versions text[] := '{}';
  v_froms    timestamptz[] := '{}';
  v_found    text[];
BEGIN
  SELECT s.name, (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END), s.queued_at
    INTO v_name, v_version, v_from
    FROM workflow_status s
   WHERE s.ctid = p_front
     AND s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = p_priority AND s.partition_key = p_key;
  IF NOT FOUND THEN
    -- Somebody has taken it.
    v_name := '';
    v_version := '';
  END IF;
  LOOP
    IF v_from IS NULL THEN
      SELECT s.name, (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END), s.queued_at
        INTO v_name, v_version, v_from
        FROM workflow_status s
       WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = p_priority AND s.partition_key = p_key
         AND (s.name, (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END))
             > (v_name, v_version)
       ORDER BY s.name, (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END),
                s.queued_at
       LIMIT 1;
      EXIT WHEN NOT FOUND;
    END IF;
    IF v_name = ANY (p_names) AND v_version IN ('', '=' || p_app_version) THEN
      v_names := v_names || v_name;
      v_versions := v_versions || v_version;
      v_froms := v_froms || v_from;
    END IF;
    v_from := NULL;
  END LOOP;
  SELECT array_agg(c.workflow_id ORDER BY c.queued_at) INTO v_found FROM (
    SELECT f.workflow_id, f.queued_at
      FROM unnest(v_names, v_versions, v_froms) AS g (name, version, from_at)
     CROSS JOIN LATERAL (
       SELECT s.workflow_id, s.queued_at
         FROM workflow_status s
        WHERE s.status = 'ENQUEUED' AND s.queue = p_queue AND s.priority = p_priority AND s.partition_key = p_key
          AND s.name = g.name
          AND (CASE WHEN s.any_version OR s.epoch = 0 AND s.forked_from IS NULL THEN '' ELSE '=' || s.app_version END) = g.version
          AND s.queued_at >= g.from_at AND s.workflow_id <> ALL (p_except)
        ORDER BY s.queued_at
        LIMIT p_take
          FOR NO KEY UPDATE SKIP LOCKED
     ) f
     ORDER BY f.queued_at
     LIMIT p_take
  ) c;
  RETURN coalesce(v_found, '{}');
END
$$;
