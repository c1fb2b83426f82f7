-- Renews what is still there, inside names' rows and in request rows. No queue changes, so no name is locked for it; a
-- removal under way on such a row is waited for, and then counts. Nothing found inside a name's row means nothing: the
-- holder may have moved into a row, which the second statement sees. Owners that are in neither place are gone.
-- :names :owners :ttl_us :pending_us
START TRANSACTION;
UPDATE holdfast_names SET expires_us = GREATEST(expires_us, :clock + :ttl_us)
WHERE name IN (:names) AND queued = 0 AND owner IN (:owners) AND expires_us > :clock;
UPDATE holdfast_requests SET expires_us = GREATEST(expires_us, :clock + IF(token IS NULL, :pending_us, :ttl_us))
WHERE owner IN (:owners) AND expires_us > :clock;
