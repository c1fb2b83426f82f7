-- A page of the names that have a queue, in byte order.
-- :from :until :page
SELECT holdfast_names.name FROM holdfast_names
WHERE name >= :from AND name < :until
  AND IF(queued = 0, token IS NOT NULL AND GREATEST(expires_us, kept_us) > :clock, EXISTS (
    SELECT 1 FROM holdfast_requests
    WHERE holdfast_requests.name = holdfast_names.name AND GREATEST(holdfast_requests.expires_us, holdfast_requests.kept_us) > :clock))
ORDER BY name LIMIT :page;
