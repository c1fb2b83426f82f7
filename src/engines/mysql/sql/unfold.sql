-- A second request comes: the holder inside the name's row, if it is alive, moves into a request row of its own. Not so
-- when the newcomer neither waits nor fits beside it. Sets @aside to 0 while a living holder stays inside.
-- :name :owner :shared :most :stays (1: the newcomer waits or steals); reads @now
SET @alive = (SELECT COUNT(*) FROM holdfast_names
  WHERE name = :name AND queued = 0 AND token IS NOT NULL AND GREATEST(expires_us, kept_us) > @now);
INSERT INTO holdfast_requests
  (name, place, owner, token, shared, most, expires_us, kept_us, min_hold_us, since_us, bell, client)
SELECT name, 0, IF(expires_us > @now, owner, NULL), token, shared, most, IF(expires_us > @now, expires_us, kept_us),
  kept_us, 0, since_us, IF(expires_us > @now, bell, NULL), client
FROM holdfast_names
WHERE name = :name AND @alive = 1
  AND (:stays = 1 OR owner = :owner OR (:shared = 1 AND shared = 1 AND LEAST(most, :most) > 1));
SET @aside = IF(ROW_COUNT() = 1 OR @alive = 0, 1, 0);
