-- Opens a transaction on one queue: locks the name, *then* reads the time into @now. Both last until the commit.
-- :name
START TRANSACTION;
UPDATE holdfast_names SET turn = 1 - turn WHERE name = :name;
SET @now = :clock;
