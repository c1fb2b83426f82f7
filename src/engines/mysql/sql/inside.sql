-- Which of these owners hold their lock inside the name's row.
-- :names :owners
SELECT owner, token FROM holdfast_names
WHERE name IN (:names) AND queued = 0 AND owner IN (:owners) AND expires_us > :clock;
