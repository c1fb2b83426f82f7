-- The owner leaves its request row.
-- :name :owner
DELETE FROM holdfast_requests WHERE name = :name AND owner = :owner;
