-- Takes a name that nobody stands at: the uncontended way in, one statement and one commit.
-- :name :owner :shared :most :ttl_us :kept_for_us :bell :client
-- Returns the token as the insert id; 0: not taken (somebody holds it, waits for it, or it is this owner's already).
--
-- The clock is read when the statement starts, which may be before it gets the row. That errs on the safe side only: it
-- is still after the client began to count its own lease, and an early clock never sees a lease as over that is not.
-- Columns are assigned from left to right: `token > last_token` says, from the second one on, that this request took it.
INSERT INTO holdfast_names (name, last_token, token, owner, shared, most, expires_us, kept_us, since_us, bell, client)
VALUES (:name, LAST_INSERT_ID(:clock), :clock, :owner, :shared, :most, :clock + :ttl_us,
  IF(:kept_for_us > 0, :clock + :kept_for_us, 0), :clock, :bell, :client)
ON DUPLICATE KEY UPDATE
  token      = IF(queued = 0 AND (token IS NULL OR (expires_us <= :clock AND kept_us <= :clock)),
                  GREATEST(last_token + 1, :clock), token),
  owner      = IF(token > last_token, :owner, owner),
  shared     = IF(token > last_token, :shared, shared),
  most       = IF(token > last_token, :most, most),
  expires_us = IF(token > last_token, :clock + :ttl_us, expires_us),
  kept_us    = IF(token > last_token, IF(:kept_for_us > 0, :clock + :kept_for_us, 0), kept_us),
  since_us   = IF(token > last_token, :clock, since_us),
  bell       = IF(token > last_token, :bell, bell),
  client     = IF(token > last_token, :client, client),
  last_token = IF(token > last_token, LAST_INSERT_ID(token), last_token + LAST_INSERT_ID(0));
