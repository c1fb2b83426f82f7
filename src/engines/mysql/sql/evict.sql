-- Ends the holder with this token, wherever it stands, also a place without an owner. Returns the owners that were ended
-- and sets @evicted.
-- :name :token
INSERT INTO holdfast_endings (owner, reason, until_us)
SELECT owner, 'evicted', expires_us FROM holdfast_names
WHERE name = :name AND queued = 0 AND token = :token AND owner IS NOT NULL AND expires_us > :clock
UNION ALL
SELECT owner, 'evicted', expires_us FROM holdfast_requests
WHERE name = :name AND token = :token AND owner IS NOT NULL AND expires_us > :clock;
SELECT owner FROM holdfast_names WHERE name = :name AND queued = 0 AND token = :token AND owner IS NOT NULL
UNION ALL
SELECT owner FROM holdfast_requests WHERE name = :name AND token = :token AND owner IS NOT NULL;
SET @evicted = (SELECT COUNT(*) FROM holdfast_names
  WHERE name = :name AND queued = 0 AND token = :token AND GREATEST(expires_us, kept_us) > :clock);
UPDATE holdfast_names SET token = NULL, owner = NULL, bell = NULL, expires_us = :clock, kept_us = 0
WHERE name = :name AND queued = 0 AND token = :token;
DELETE FROM holdfast_requests WHERE name = :name AND token = :token;
SET @evicted = @evicted + ROW_COUNT();
