-- Directly behind unfold.sql, for a request that does not wait: it joins only where it would be held at once, so not
-- while a living holder stays inside the name's row. Sets @admitted.
-- :name :most
SET @admitted = IF(ROW_COUNT() = 1 OR NOT EXISTS (SELECT 1 FROM holdfast_names
    WHERE name = :name AND queued = 0 AND token IS NOT NULL AND GREATEST(expires_us, kept_us) > :clock),
  (SELECT COUNT(*) < LEAST(COALESCE(MIN(most), :most), :most) FROM holdfast_requests WHERE name = :name), 0);
