-- The one clock. Everything that is stored or compared as a time comes from here.
--
-- holdfast.clock_offset (an interval, empty by default) moves it, so that tests need not wait.
-- clock_timestamp() rather than now(): inside a caller's long transaction now() would be the time of its BEGIN, and a lease
-- or deadline computed from it would be old before it is visible.
CREATE OR REPLACE FUNCTION clock() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
  SELECT clock_timestamp() + coalesce(nullif(current_setting('holdfast.clock_offset', true), ''), '0')::interval
$$;
