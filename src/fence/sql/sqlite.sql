-- The fence for SQLite 3.35 or newer. `:name :epoch :token` are arguments; the table's name is replaced by the one that was
-- asked for.

-- name: schema
CREATE TABLE IF NOT EXISTS holdfast_fence (
  name  BLOB    NOT NULL PRIMARY KEY,   -- UTF-8
  epoch INTEGER NOT NULL,
  token INTEGER NOT NULL                -- the latest that has entered
) WITHOUT ROWID

-- name: enter
-- The file's write lock is held from here on. Returns no row to a stale token.
INSERT INTO holdfast_fence (name, epoch, token) VALUES (:name, CAST(:epoch AS INTEGER), CAST(:token AS INTEGER))
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, token = excluded.token
WHERE (holdfast_fence.epoch, holdfast_fence.token) <= (excluded.epoch, excluded.token)
RETURNING CAST(epoch AS TEXT) AS epoch, CAST(token AS TEXT) AS token

-- name: seen
SELECT CAST(epoch AS TEXT) AS epoch, CAST(token AS TEXT) AS token FROM holdfast_fence WHERE name = :name
