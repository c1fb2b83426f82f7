-- The tables of Holdfast's mysql engine, schema version 1. For MySQL 8.0+ and MariaDB 10.6+, InnoDB.
--
-- The engine makes them itself on first use. Where its user may not create tables (`migrate: false`), run this file once
-- in the database of the locks; every statement may be repeated. The engine then needs no more than
--
--   GRANT SELECT, INSERT, UPDATE, DELETE ON the_database.holdfast_names    TO the_user;
--   GRANT SELECT, INSERT, UPDATE, DELETE ON the_database.holdfast_requests TO the_user;
--   GRANT SELECT, INSERT, UPDATE, DELETE ON the_database.holdfast_endings  TO the_user;
--   GRANT SELECT                         ON the_database.holdfast_schema   TO the_user;
--
-- Names, owners and bells are bytes (VARBINARY): letter case, accents and trailing spaces make different names.
-- Times are microseconds since 1970 in UTC, by this server's clock, so no time zone and no summer time can touch a lease.

-- One row a name. While `queued` is 0, its one holder, if any, stands in this row (`token` is not null; `owner` is null
-- where only a minimum hold keeps the place). While `queued` is 1, its requests stand in holdfast_requests.
-- A name in no use is remembered for a while, so that its tokens grow; clients then delete its row.
CREATE TABLE IF NOT EXISTS holdfast_names (
  name       VARBINARY(512)   NOT NULL,
  last_token BIGINT           NOT NULL,            -- the last token given
  turn       TINYINT          NOT NULL DEFAULT 0,  -- flipped by every transaction on the queue, so that two always collide
  queued     TINYINT          NOT NULL DEFAULT 0,
  token      BIGINT           NULL,
  owner      VARBINARY(64)    NULL,
  shared     TINYINT          NOT NULL DEFAULT 0,
  most       INT UNSIGNED     NOT NULL DEFAULT 1,  -- how many may hold it together, as this request sees it; exclusive: 1
  expires_us BIGINT           NOT NULL DEFAULT 0,  -- end of the lease; of a free name: since when it is in no use
  kept_us    BIGINT           NOT NULL DEFAULT 0,  -- end of the minimum hold
  since_us   BIGINT           NOT NULL DEFAULT 0,
  bell       VARBINARY(64)    NULL,                -- the named lock that its owner's session holds until it leaves
  client     VARBINARY(26624) NULL,                -- who it is and what it publishes, JSON: for people
  PRIMARY KEY (name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- One row a request, in the order of `place`. Those with a token are held: always the first ones of the queue.
CREATE TABLE IF NOT EXISTS holdfast_requests (
  name        VARBINARY(512)  NOT NULL,
  place       BIGINT          NOT NULL,
  owner       VARBINARY(64)   NULL,                -- null: only a minimum hold keeps this place
  token       BIGINT          NULL,                -- null: pending
  shared      TINYINT         NOT NULL,
  most        INT UNSIGNED    NOT NULL,
  expires_us  BIGINT          NOT NULL,
  kept_us     BIGINT          NOT NULL,
  min_hold_us BIGINT          NOT NULL,            -- added to the time of the grant to make kept_us
  since_us    BIGINT          NOT NULL,            -- queued, later granted
  bell        VARBINARY(64)   NULL,
  client      VARBINARY(26624) NULL,
  PRIMARY KEY (name, place),
  UNIQUE KEY by_owner (owner),
  KEY by_expiry (name, expires_us)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- What became of requests that did not end by themselves, until their lease would have ended: their owners ask.
CREATE TABLE IF NOT EXISTS holdfast_endings (
  owner    VARBINARY(64) NOT NULL,
  reason   VARBINARY(16) NOT NULL,
  until_us BIGINT        NOT NULL,
  PRIMARY KEY (owner),
  KEY by_time (until_us)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- Made last: when its row is there, so is everything else.
CREATE TABLE IF NOT EXISTS holdfast_schema (
  version INT NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

INSERT IGNORE INTO holdfast_schema (version) VALUES (1);
