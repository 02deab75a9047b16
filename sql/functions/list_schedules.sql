-- The schedules by name, with the clock; with p_name that one only.
CREATE OR REPLACE FUNCTION list_schedules(p_name text)
RETURNS TABLE (definition schedule, now_ms double precision)
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT s, (extract(epoch FROM clock()) * 1000)::double precision
    FROM schedule s
   WHERE p_name IS NULL OR s.name = p_name
   ORDER BY s.name
$$;
