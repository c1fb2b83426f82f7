-- A request that waits joins in any case: sets @admitted.
SET @admitted = 1;
