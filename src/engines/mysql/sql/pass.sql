-- The short way out for an exclusive holder in a request row that has no minimum hold: it leaves, and the exclusive request
-- right behind it is granted, with the name's last token. Opens the transaction; the name's row is locked first.
-- Affected rows of the last statement: 1 when it granted. 0: nobody is left, or the head of the queue is over, or
-- shared, or held.
-- :name :owner
START TRANSACTION;
UPDATE holdfast_names SET last_token = LAST_INSERT_ID(GREATEST(last_token + 1, :clock)) WHERE name = :name;
DELETE FROM holdfast_requests WHERE name = :name AND owner = :owner;
UPDATE holdfast_requests SET
  token    = IF(token IS NULL AND most = 1 AND expires_us > :clock, LAST_INSERT_ID(), token),
  since_us = IF(token = LAST_INSERT_ID(), :clock, since_us),
  kept_us  = IF(token = LAST_INSERT_ID() AND min_hold_us > 0, :clock + min_hold_us, kept_us)
WHERE name = :name ORDER BY place LIMIT 1;
