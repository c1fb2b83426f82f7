-- A request that does not wait joins only where it would be held at once: sets @admitted.
-- :name :most; reads @aside
SET @admitted = (SELECT @aside = 1 AND COUNT(*) < LEAST(COALESCE(MIN(most), :most), :most)
  FROM holdfast_requests WHERE name = :name);
