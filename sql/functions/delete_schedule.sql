-- Deletes a schedule. Its runs stay, and go on. Returns whether there was such a schedule.
CREATE OR REPLACE FUNCTION delete_schedule(p_name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM schedule s WHERE s.name = p_name;
  RETURN FOUND;
END
$$;
