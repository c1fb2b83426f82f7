-- Behind the commit and the bell, which others wait for: whom the transaction granted, and whether requests remain.
-- Two results.
-- :name; reads @granted @upto @base @remain
SELECT owner, token FROM holdfast_requests
WHERE name = :name AND @granted > 0 AND place <= @upto AND token > @base AND owner IS NOT NULL;
SELECT @remain AS remain;
