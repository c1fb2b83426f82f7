import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRedisUrl, RedisConfigError } from "../../src/redis/index.ts";

test("one server", () => {
  const url = parseRedisUrl("redis://host");
  assert.deepEqual(url.hosts, [{ host: "host", port: 6379 }]);
  assert.equal(url.topology, "single");
  assert.equal(url.database, 0);
  assert.equal(url.tls, undefined);
  assert.equal(url.password, undefined);
});

test("login, database and parameters", () => {
  const url = parseRedisUrl("rediss://us%40er:p%2Fw:d@[::1]:6380/7?client=redis&ca=/tmp/ca.pem&minReplicas=2");
  assert.deepEqual(url.hosts, [{ host: "::1", port: 6380 }]);
  assert.equal(url.username, "us@er");
  assert.equal(url.password, "p/w:d");
  assert.equal(url.database, 7);
  assert.equal(url.library, "redis");
  assert.deepEqual(url.tls, { ca: "/tmp/ca.pem", verify: true });
  assert.deepEqual([...url.rest], [["minReplicas", "2"]]);
});

test("a password without a user, and TLS that trusts anybody", () => {
  const url = parseRedisUrl("rediss://:secret@host?insecureTls=true");
  assert.equal(url.username, undefined);
  assert.equal(url.password, "secret");
  assert.equal(url.tls?.verify, false);
});

test("Sentinels and Clusters have several hosts", () => {
  const sentinel = parseRedisUrl("redis+sentinel://:pw@a,b:26380/my%20master/3?sentinelPassword=other");
  assert.deepEqual(sentinel.hosts, [
    { host: "a", port: 26_379 },
    { host: "b", port: 26_380 },
  ]);
  assert.equal(sentinel.masterName, "my master");
  assert.equal(sentinel.database, 3);
  assert.equal(sentinel.sentinelPassword, "other");
  const cluster = parseRedisUrl("rediss+cluster://a:7000,b:7001");
  assert.equal(cluster.topology, "cluster");
  assert.equal(cluster.tls?.verify, true);
});

for (const [url, complaint] of [
  ["http://host", /not a Redis URL/],
  ["redis://", /not a Redis URL/],
  ["redis://a,b", /several hosts/],
  ["redis://a:0", /a host/],
  ["redis://a:70000", /a host/],
  ["redis://a/x", /not a number/],
  ["redis://a/1/2", /not a number/],
  ["redis+sentinel://a:1", /name of the master/],
  ["redis+cluster://a:1/4", /database 0/],
  ["redis://a?client=other", /client=/],
  ["redis://a?ca=/x", /rediss/],
  ["redis://u:%zz@a", /percent-encoded/],
] as const) {
  test(`refused: ${url}`, () => {
    assert.throws(
      () => parseRedisUrl(url),
      (error) => error instanceof RedisConfigError && complaint.test(error.message),
    );
  });
}

test("a complaint never repeats the URL", () => {
  for (const url of ["redis:/user:topsecret@host", "redis://u:topsecret@host:0", "redis://u:topsecret%zz@host"]) {
    assert.throws(
      () => parseRedisUrl(url),
      (error: Error) => !error.message.includes("topsecret"),
    );
  }
});
