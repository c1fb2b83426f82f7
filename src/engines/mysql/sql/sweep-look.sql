-- Looks at a page of names for some that are in no use. Locks nothing. Three results: the last name of the page and how
-- many it has; idle names; names whose requests are all over, but nobody came to see.
-- :after :page :remember_us :few
SELECT MAX(page.name) AS last, COUNT(*) AS names
FROM (SELECT name FROM holdfast_names WHERE name > :after ORDER BY name LIMIT :page) AS page;
SELECT page.name FROM (SELECT * FROM holdfast_names WHERE name > :after ORDER BY name LIMIT :page) AS page
WHERE page.queued = 0 AND GREATEST(page.expires_us, page.kept_us) < :clock - :remember_us;
SELECT page.name FROM (SELECT name, queued FROM holdfast_names WHERE name > :after ORDER BY name LIMIT :page) AS page
WHERE page.queued = 1 AND COALESCE((SELECT MAX(GREATEST(holdfast_requests.expires_us, holdfast_requests.kept_us))
  FROM holdfast_requests WHERE holdfast_requests.name = page.name), 0) < :clock
LIMIT :few;
