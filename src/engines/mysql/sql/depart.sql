-- The owner leaves its request row. :keep = 1: a minimum hold that still runs keeps the place, ownerless.
-- :name :owner :keep; reads @now
UPDATE holdfast_requests SET owner = NULL, bell = NULL, expires_us = kept_us
WHERE name = :name AND owner = :owner AND :keep = 1 AND token IS NOT NULL AND kept_us > @now;
DELETE FROM holdfast_requests WHERE name = :name AND owner = :owner;
