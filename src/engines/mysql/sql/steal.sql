-- Ends all holders, unless the thief stands in the queue already (a repeated command). Returns their owners.
-- :name :owner
SET @first = IF(EXISTS (SELECT 1 FROM holdfast_requests WHERE owner = :owner), 0, 1);
INSERT INTO holdfast_endings (owner, reason, until_us)
SELECT owner, 'stolen', expires_us FROM holdfast_requests
WHERE name = :name AND token IS NOT NULL AND owner IS NOT NULL AND @first = 1;
SELECT owner FROM holdfast_requests WHERE name = :name AND token IS NOT NULL AND owner IS NOT NULL AND @first = 1;
DELETE FROM holdfast_requests WHERE name = :name AND token IS NOT NULL AND @first = 1;
