-- The fence for PostgreSQL. `:name :epoch :token` are arguments; the table's name is replaced by the one that was asked for.

-- name: schema
CREATE TABLE IF NOT EXISTS holdfast_fence (
  name  BYTEA  NOT NULL PRIMARY KEY,   -- UTF-8
  epoch BIGINT NOT NULL,
  token BIGINT NOT NULL                -- the latest that has entered
)

-- name: enter
-- Takes the row's lock until the transaction ends, whether it changes the row or not. Returns no row to a stale token.
INSERT INTO holdfast_fence (name, epoch, token) VALUES (:name, CAST(:epoch AS BIGINT), CAST(:token AS BIGINT))
ON CONFLICT (name) DO UPDATE SET epoch = EXCLUDED.epoch, token = EXCLUDED.token
WHERE (holdfast_fence.epoch, holdfast_fence.token) <= (EXCLUDED.epoch, EXCLUDED.token)
RETURNING CAST(epoch AS TEXT) AS epoch, CAST(token AS TEXT) AS token

-- name: seen
SELECT CAST(epoch AS TEXT) AS epoch, CAST(token AS TEXT) AS token FROM holdfast_fence WHERE name = :name
