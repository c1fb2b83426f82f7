-- What the transaction did for others: whom it granted, and whether any requests remain. Two results.
-- :name; reads @granted @upto @base @remain
SELECT owner, token FROM holdfast_requests
WHERE name = :name AND @granted > 0 AND place <= @upto AND token > @base AND owner IS NOT NULL;
SELECT @remain AS remain;
