-- Forgets names, if they are still in no use.
-- :names :remember_us
DELETE FROM holdfast_names
WHERE name IN (:names) AND queued = 0 AND GREATEST(expires_us, kept_us) < :clock - :remember_us;
