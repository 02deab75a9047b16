-- Named leases, and fences: authority that is not bound to a workflow.
-- compatible-with: 1

CREATE TABLE named_lease (
  name        text COLLATE "C" NOT NULL,
  -- Grows with every holder: the fencing number.
  token       bigint NOT NULL,
  -- Made anew for every acquisition: how a call whose reply was lost knows its own.
  holder      uuid NOT NULL,
  -- Who that is, for people.
  held_by     text NOT NULL,
  acquired_at timestamptz NOT NULL,
  held_until  timestamptz NOT NULL,
  PRIMARY KEY (name),
  CONSTRAINT named_lease_name_length CHECK (octet_length(name) BETWEEN 1 AND 255)
) WITH (fillfactor = 50);

-- The highest token that was accepted for a resource.
CREATE TABLE fence (
  resource    text COLLATE "C" NOT NULL,
  token       bigint NOT NULL,
  accepted_at timestamptz NOT NULL,
  PRIMARY KEY (resource),
  CONSTRAINT fence_resource_length CHECK (octet_length(resource) BETWEEN 1 AND 512)
) WITH (fillfactor = 50);
