-- In front of depart.sql, for a release: a minimum hold that still runs keeps the place, without an owner.
-- :name :owner
UPDATE holdfast_requests SET owner = NULL, bell = NULL, expires_us = kept_us
WHERE name = :name AND owner = :owner AND token IS NOT NULL AND kept_us > :clock;
