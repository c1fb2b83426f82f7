-- Adds the request at the end of the queue (a thief: at the front), unless it is there.
-- :name :owner :shared :most :pending_us :min_hold_us :bell :client :steal; reads @now @admitted
SET @place = (SELECT COALESCE(IF(:steal = 1, MIN(place) - 1, MAX(place) + 1), 0) FROM holdfast_requests WHERE name = :name);
INSERT INTO holdfast_requests
  (name, place, owner, token, shared, most, expires_us, kept_us, min_hold_us, since_us, bell, client)
SELECT :name, @place, :owner, NULL, :shared, :most, @now + :pending_us, 0, :min_hold_us, @now, :bell, :client
FROM (SELECT 1 AS one) AS once
WHERE @admitted = 1 AND NOT EXISTS (SELECT 1 FROM holdfast_requests WHERE owner = :owner);
