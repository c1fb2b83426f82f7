-- A second request comes: the holder inside the name's row, if its time is not up, moves into a request row of its own.
-- Not so when the newcomer neither waits nor fits beside it.
-- :name :owner :shared :most :stays (1: the newcomer waits or steals)
INSERT INTO holdfast_requests
  (name, place, owner, token, shared, most, expires_us, kept_us, min_hold_us, since_us, bell, client)
SELECT name, 0, owner, token, shared, most, expires_us, kept_us, 0, since_us, bell, client
FROM holdfast_names
WHERE name = :name AND queued = 0 AND token IS NOT NULL AND GREATEST(expires_us, kept_us) > :clock
  AND (:stays = 1 OR owner = :owner OR (:shared = 1 AND shared = 1 AND LEAST(most, :most) > 1));
