-- What the transaction did for others: whom it granted (a row without an owner: nobody), and whether requests remain.
-- :name; reads @granted @upto @base @remain
SELECT @remain AS remain, fresh.owner, fresh.token
FROM (SELECT 1 AS one) AS once LEFT JOIN holdfast_requests AS fresh
  ON fresh.name = :name AND @granted > 0 AND fresh.place <= @upto AND fresh.token > @base AND fresh.owner IS NOT NULL;
