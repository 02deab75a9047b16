-- As find_workflows, without the filters by queue and key: what libraries of schema version 1 call.
CREATE OR REPLACE FUNCTION list_workflows(
  p_statuses text[], p_names text[], p_id_prefix text, p_executor_id text, p_parent_id text, p_app_version text,
  p_attention boolean, p_created_from timestamptz, p_created_before timestamptz,
  p_newest_first boolean, p_after_us bigint, p_after_id text, p_limit integer, p_payload boolean, p_payload_bytes bigint
)
RETURNS TABLE (
  workflow workflow_status, created_us bigint, input text, output text, error text, has_more boolean
)
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT f.*
    FROM find_workflows(p_statuses, p_names, p_id_prefix, p_executor_id, p_parent_id, p_app_version, NULL, NULL, p_attention,
                        p_created_from, p_created_before, p_newest_first, p_after_us, p_after_id, p_limit, p_payload,
                        p_payload_bytes) f
$$;
