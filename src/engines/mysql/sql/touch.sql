-- Renews one request by its state. A lease is never shortened.
-- :name :owner :ttl_us :pending_us :bell
UPDATE holdfast_requests SET expires_us = GREATEST(expires_us, :clock + IF(token IS NULL, :pending_us, :ttl_us)), bell = :bell
WHERE name = :name AND owner = :owner;
