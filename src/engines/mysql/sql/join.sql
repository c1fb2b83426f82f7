-- Adds the request at the end of the queue (a thief: at the front), unless it is there.
-- :name :owner :shared :most :pending_us :min_hold_us :bell :client :steal :stays; reads @admitted where it does not stay
INSERT INTO holdfast_requests
  (name, place, owner, token, shared, most, expires_us, kept_us, min_hold_us, since_us, bell, client)
SELECT :name,
  COALESCE((SELECT IF(:steal = 1, MIN(place) - 1, MAX(place) + 1) FROM holdfast_requests WHERE name = :name), 0),
  :owner, NULL, :shared, :most, :clock + :pending_us, 0, :min_hold_us, :clock, :bell, :client
FROM (SELECT 1 AS one) AS once
WHERE (:stays = 1 OR @admitted = 1) AND NOT EXISTS (SELECT 1 FROM holdfast_requests WHERE owner = :owner);
