-- Removes the requests whose time is up: lease and minimum hold. A renewal under way on such a row is waited for, and
-- then counts.
-- :name
DELETE FROM holdfast_requests WHERE name = :name AND expires_us <= :clock AND kept_us <= :clock;
