-- The holder that stands inside its name's row leaves: the uncontended way out, one statement and one commit.
-- :name :owner :keep (1: the minimum hold counts)
-- Affected rows: 1 when it stood there; 0 means that it stands in a request row, or nowhere.
UPDATE holdfast_names SET
  token      = IF(:keep = 1 AND kept_us > :clock, token, NULL),
  expires_us = IF(:keep = 1 AND kept_us > :clock, kept_us, :clock),
  kept_us    = IF(:keep = 1, kept_us, 0),
  owner      = NULL,
  bell       = NULL
WHERE name = :name AND queued = 0 AND owner = :owner;
