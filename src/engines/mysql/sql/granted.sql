-- Which of these owners have been granted. A plain read: it learns of grants, it never makes one.
-- :owners
SELECT owner, token FROM holdfast_requests WHERE owner IN (:owners) AND token IS NOT NULL AND expires_us > :clock;
