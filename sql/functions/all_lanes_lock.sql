-- The number of the advisory lock of all lanes together. Who locks some lanes shares it, before them. Who would have to lock very many has
-- it alone instead, and locks none: the server's table of locks has room for some thousands, and all transactions share it.
CREATE OR REPLACE FUNCTION all_lanes_lock() RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT hashtextextended(json_build_array(current_schema(), 'outbox lanes')::text, 0)
$$;
