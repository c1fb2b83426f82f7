-- Every statement of the engine, prepared once for each connection. `-- name:` begins one; arguments are in the order
-- of the question marks.

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: next-token
-- Arguments: the wall clock in µs. Returns: the token.
UPDATE counter SET token = max(token + 1, ?) WHERE only_row = 1 RETURNING token

-- name: queue-after
-- The queue of a name in order, 32 rows at a time. Arguments: name, the place after which to begin.
SELECT request.place, request.owner, request.visitor, request.mode, request.places AS "limit", request.token,
       request.ends_ms AS endsMs, request.ttl_ms AS ttlMs, request.min_hold_ms AS minHoldMs,
       request.hold_ends_ms AS holdEndsMs, request.since_wall_ms AS sinceWallMs, request.renewals,
       request.client_id AS clientId, request.host, request.pid, visitor.boot, visitor.gone
  FROM request LEFT JOIN visitor ON visitor.id = request.visitor
 WHERE request.name = ? AND request.place > ?
 ORDER BY request.place
 LIMIT 32

-- name: queue-ahead
-- Who stands before a place, nearest first, without those whose lease is over or whose process is dead.
-- Arguments: name, place, now, the boot of the asker (leases of other boots cannot be read here), how many at most.
SELECT request.visitor, request.mode, request.places AS "limit", request.ttl_ms AS ttlMs,
       max(request.ends_ms, request.hold_ends_ms) AS endsMs, visitor.boot
  FROM request LEFT JOIN visitor ON visitor.id = request.visitor
 WHERE request.name = ? AND request.place < ?
   AND (max(request.ends_ms, request.hold_ends_ms) > ? OR visitor.boot IS NOT ?)
   AND visitor.gone IS NOT 1
 ORDER BY request.place DESC
 LIMIT ?

-- name: last-place
-- Arguments: name.
SELECT place FROM request WHERE name = ? ORDER BY place DESC LIMIT 1

-- name: place-of
-- Arguments: name, owner.
SELECT place FROM request WHERE name = ? AND owner = ?

-- name: insert-request
INSERT INTO request (name, place, owner, visitor, mode, places, token, ends_ms, ttl_ms, min_hold_ms, hold_ends_ms,
                     since_wall_ms, renewals, client_id, host, pid, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)

-- name: grant
-- Arguments: token, end of the minimum hold, wall clock, name, place.
UPDATE request SET token = ?, hold_ends_ms = ?, since_wall_ms = ? WHERE name = ? AND place = ?

-- name: renew
-- Never shortens a lease, never revives one. Arguments: now, TTL while pending, TTL while held, now, now, name, place, owner, now.
UPDATE request
   SET ends_ms = max(ends_ms, ? + iif(token IS NULL, ?, ?)),
       ttl_ms = max(ends_ms - ?, iif(token IS NULL, ?, ?)),
       renewals = renewals + 1
 WHERE name = ? AND place = ? AND owner = ? AND ends_ms > ?
RETURNING token, mode, places AS "limit"

-- name: own-request
-- Arguments: name, place, owner.
SELECT token, ends_ms AS endsMs, hold_ends_ms AS holdEndsMs FROM request WHERE name = ? AND place = ? AND owner = ?

-- name: delete-request
-- Arguments: name, place.
DELETE FROM request WHERE name = ? AND place = ?

-- name: disown
-- The owner goes, its minimum hold keeps the place. Arguments: name, place.
UPDATE request SET owner = '', ends_ms = hold_ends_ms, ttl_ms = 0 WHERE name = ? AND place = ?

-- name: held-by-token
-- Arguments: name, token.
SELECT place, owner, visitor, ttl_ms AS ttlMs FROM request WHERE name = ? AND token = ?

-- name: published
-- Arguments: name.
SELECT place, CAST(value AS BLOB) AS value FROM request WHERE name = ? AND value IS NOT NULL

-- name: next-behind
-- Arguments: name, place.
SELECT owner, visitor, token FROM request WHERE name = ? AND place > ? ORDER BY place LIMIT 1

-- name: names
-- Arguments: the last name seen, a lower and an upper bound.
SELECT DISTINCT name FROM request WHERE name > ? AND name >= ? AND name < ? ORDER BY name LIMIT 256

-- name: add-ended
-- Arguments: owner, reason, until.
INSERT INTO ended VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE SET reason = excluded.reason

-- name: ended-reason
-- Arguments: owner.
SELECT reason FROM ended WHERE owner = ?

-- name: prune-ended
-- Arguments: wall clock.
DELETE FROM ended WHERE until_wall_ms <= ?

-- name: sighting
-- Arguments: name, place, boot.
SELECT seen_ms AS seenMs, owner, renewals, token FROM sighting WHERE name = ? AND place = ? AND boot = ?

-- name: see
-- Arguments: name, place, boot, now, owner, renewals, token.
INSERT INTO sighting VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name, place, boot)
DO UPDATE SET seen_ms = excluded.seen_ms, owner = excluded.owner, renewals = excluded.renewals, token = excluded.token

-- name: prune-sightings
DELETE FROM sighting
 WHERE NOT EXISTS (SELECT 1 FROM request WHERE request.name = sighting.name AND request.place = sighting.place)

-- name: insert-visitor
INSERT INTO visitor (id, boot, presence, presence_inode, bell, guard_pid, guard_started, pid_space, opened_wall_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: move-bell
-- Arguments: address, id.
UPDATE visitor SET bell = ? WHERE id = ?

-- name: visitor
-- Arguments: id.
SELECT id, boot, presence, presence_inode AS presenceInode, bell, guard_pid AS guardPid, guard_started AS guardStarted,
       pid_space AS pidSpace, gone
  FROM visitor WHERE id = ?

-- name: mark-gone
-- Arguments: id.
UPDATE visitor SET gone = 1 WHERE id = ?

-- name: leave
-- The connection closes, what it still holds ends with its leases. Arguments: id.
UPDATE visitor SET presence = NULL, presence_inode = NULL, bell = NULL WHERE id = ?

-- name: present-visitors
-- A few that may have died without a word. Arguments: boot, how many.
SELECT id FROM visitor WHERE boot = ? AND presence IS NOT NULL AND gone = 0 ORDER BY random() LIMIT ?

-- name: prune-visitors
-- Dead, closed or of an old boot, and nothing of theirs is left. Arguments: own boot, wall clock a week ago.
DELETE FROM visitor
 WHERE (gone = 1 OR presence IS NULL OR (boot <> ? AND opened_wall_ms < ?))
   AND id NOT IN (SELECT visitor FROM request)

-- name: known-presence
-- Arguments: file name, file name.
SELECT 1 FROM visitor WHERE presence = ? OR bell = ?

-- name: swept
SELECT swept FROM counter WHERE only_row = 1

-- name: set-swept
-- Arguments: name.
UPDATE counter SET swept = ? WHERE only_row = 1

-- name: names-after
-- For sweeps. Arguments: name, how many.
SELECT DISTINCT name FROM request WHERE name > ? ORDER BY name LIMIT ?
