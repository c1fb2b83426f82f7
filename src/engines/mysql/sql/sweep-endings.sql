-- Forgets endings that nobody will ask for any more.
-- :page
DELETE FROM holdfast_endings WHERE until_us < :clock ORDER BY until_us LIMIT :page;
