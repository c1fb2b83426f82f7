-- Behind the commit of pass.sql: who stands at the head, and its token if it is the one that was given.
-- :name
SELECT owner, IF(token = LAST_INSERT_ID(), token, NULL) AS token FROM holdfast_requests
WHERE name = :name ORDER BY place LIMIT 1;
