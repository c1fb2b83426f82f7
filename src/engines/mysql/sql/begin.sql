-- Opens a transaction on one queue: locks the name. Later statements read the time, so all of it is from after the wait;
-- the lock lasts until the commit. The flip makes two such transactions collide even where a cluster has no common locks.
-- :name
START TRANSACTION;
UPDATE holdfast_names SET turn = 1 - turn WHERE name = :name;
