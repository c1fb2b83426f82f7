-- The queue of a name in order, without what has expired. One statement, so one moment.
-- :name
SELECT -1 AS place, owner, token, shared, most, client, since_us, IF(expires_us > :clock, expires_us, kept_us) - :clock AS left_us
FROM holdfast_names
WHERE name = :name AND queued = 0 AND token IS NOT NULL AND GREATEST(expires_us, kept_us) > :clock
UNION ALL
SELECT place, owner, token, shared, most, client, since_us, IF(expires_us > :clock, expires_us, kept_us) - :clock
FROM holdfast_requests
WHERE name = :name AND GREATEST(expires_us, kept_us) > :clock
ORDER BY place;
