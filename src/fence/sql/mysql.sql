-- The fence for MySQL and MariaDB, InnoDB. `:name :epoch :token` are arguments; the table's name is replaced by the one that
-- was asked for.

-- name: schema
CREATE TABLE IF NOT EXISTS holdfast_fence (
  name  VARBINARY(512) NOT NULL PRIMARY KEY,   -- UTF-8
  epoch BIGINT         NOT NULL,
  token BIGINT         NOT NULL                -- the latest that has entered
) ENGINE=InnoDB

-- name: enter
-- Takes the row's lock until the transaction ends, whether it changes the row or not. Columns are assigned from left to
-- right: `epoch` is still the old one where `token` is decided.
INSERT INTO holdfast_fence (name, epoch, token) VALUES (:name, CAST(:epoch AS SIGNED), CAST(:token AS SIGNED))
ON DUPLICATE KEY UPDATE
  token = IF(epoch < CAST(:epoch AS SIGNED) OR (epoch = CAST(:epoch AS SIGNED) AND token < CAST(:token AS SIGNED)),
             CAST(:token AS SIGNED), token),
  epoch = GREATEST(epoch, CAST(:epoch AS SIGNED))

-- name: seen
-- A locking read sees the row as it is, not as it was when the transaction's snapshot was taken.
SELECT CAST(epoch AS CHAR) AS epoch, CAST(token AS CHAR) AS token FROM holdfast_fence WHERE name = :name FOR UPDATE
