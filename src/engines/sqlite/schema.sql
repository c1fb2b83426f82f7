-- The tables of a lock file, version 1. Run once, in the transaction that makes the file.
-- Times are milliseconds: `…_ms` on the monotonic clock of the boot that wrote them, `…_wall_ms` since 1970.

-- "Hold": marks the file as ours, so that no other application's database is ever touched.
PRAGMA application_id = 0x486f6c64;
PRAGMA user_version = 1;

-- One row for the whole file.
CREATE TABLE counter (
  only_row  INTEGER PRIMARY KEY CHECK (only_row = 1),
  token     INTEGER NOT NULL,   -- the last token given to any name; never goes back
  swept     BLOB                -- the last name that a sweep has looked at; null: begin at the first
) STRICT;
INSERT INTO counter VALUES (1, 0, NULL);

-- One row for each connect() of each process.
CREATE TABLE visitor (
  id             INTEGER PRIMARY KEY,            -- random, never used again
  boot           TEXT NOT NULL,                  -- which monotonic clock its rows are written in
  presence       TEXT,                           -- its presence file; null: only leases decide
  presence_inode TEXT,                           -- device and inode of that file: a copy of it proves nothing
  bell           TEXT,                           -- where its socket listens; null: it has none
  guard_pid      INTEGER,                        -- the process group whose life keeps its held places taken
  guard_started  TEXT,                           -- when the leader of that group started
  pid_space      TEXT,                           -- the PID namespace in which guard_pid is meant
  gone           INTEGER NOT NULL DEFAULT 0,     -- 1: its presence lock was free, so its process is dead
  opened_wall_ms INTEGER NOT NULL
) STRICT;

-- The queues. A name's queue is its rows in the order of `place`; the held ones are a prefix.
CREATE TABLE request (
  name          BLOB NOT NULL,      -- UTF-8
  place         INTEGER NOT NULL,
  owner         TEXT NOT NULL,      -- empty: kept by its minimum hold alone
  visitor       INTEGER NOT NULL,
  mode          TEXT NOT NULL,      -- 'exclusive' or 'shared'
  places        INTEGER NOT NULL,   -- how many may be held at once; 2^53 - 1: any number
  token         INTEGER,            -- null while pending
  ends_ms       INTEGER NOT NULL,   -- end of the lease
  ttl_ms        INTEGER NOT NULL,   -- what was left of the lease when it was last set
  min_hold_ms   INTEGER NOT NULL,
  hold_ends_ms  INTEGER NOT NULL,   -- taken until then whatever happens to its owner; 0 while pending
  since_wall_ms INTEGER NOT NULL,   -- when it was granted, or queued while pending
  renewals      INTEGER NOT NULL,
  client_id     TEXT NOT NULL,
  host          TEXT NOT NULL,
  pid           INTEGER NOT NULL,
  value         TEXT,               -- what the request publishes
  PRIMARY KEY (name, place)
) STRICT, WITHOUT ROWID;

-- Requests of another boot, as seen by this one: their clock cannot be read, so they are watched for one TTL.
CREATE TABLE sighting (
  name     BLOB NOT NULL,
  place    INTEGER NOT NULL,
  boot     TEXT NOT NULL,      -- who saw it
  seen_ms  INTEGER NOT NULL,   -- when, on the seer's clock
  owner    TEXT NOT NULL,      -- and what stood there:
  renewals INTEGER NOT NULL,
  token    INTEGER,
  PRIMARY KEY (name, place, boot)
) STRICT, WITHOUT ROWID;

-- What became of requests that did not end by themselves, until their lease would have ended.
CREATE TABLE ended (
  owner         TEXT PRIMARY KEY,
  reason        TEXT NOT NULL,      -- 'stolen' or 'evicted'
  until_wall_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
