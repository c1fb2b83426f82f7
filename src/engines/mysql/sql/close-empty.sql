-- Behind pass.sql: writes down that the queue is empty, if it is. Affected rows: 1 when it is.
-- :name
UPDATE holdfast_names SET queued = 0, expires_us = :clock
WHERE name = :name AND queued = 1 AND NOT EXISTS (SELECT 1 FROM holdfast_requests WHERE holdfast_requests.name = :name);
