-- The number of the advisory lock of a lane, which is the events of one topic and key. Two lanes that share one wait for each other
-- for a moment now and then.
CREATE OR REPLACE FUNCTION lane_lock(p_topic text, p_key text) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT hashtextextended(json_build_array(current_schema(), 'outbox lane', p_topic, p_key)::text, 0)
$$;
