-- Removes the requests whose time is up. Where a minimum hold runs longer than the lease, the place stays, ownerless.
-- A renewal under way on such a row is waited for, and then counts.
-- :name; reads @now
UPDATE holdfast_requests SET owner = NULL, bell = NULL, expires_us = kept_us
WHERE name = :name AND expires_us <= @now AND kept_us > @now;
DELETE FROM holdfast_requests WHERE name = :name AND expires_us <= @now;
