/** What is checked before anything is sent: connection strings, paths, options; and the arithmetic of the time-outs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  digestId,
  parseConnectionString,
  sessionTiming,
  ZooKeeper,
  ZooKeeperError,
} from "../../src/zookeeper/index.ts";
import { HostRing, hostText } from "../../src/zookeeper/hosts.ts";
import { Chroot, checkPath } from "../../src/zookeeper/paths.ts";
import { DEFAULT_LEADER_LAG_MS, leaderLagMs } from "../../src/zookeeper/timing.ts";
import { systemClock } from "../../src/engine/clock.ts";

const invalid = (error: unknown): boolean => error instanceof ZooKeeperError && error.code === "INVALID_ARGUMENT";

test("connection strings", () => {
  const cases: readonly [text: string, hosts: string, chroot: string][] = [
    ["zk", "zk:2181", ""],
    ["zk:2182", "zk:2182", ""],
    ["a:1,b:2, c", "a:1,b:2,c:2181", ""],
    ["10.0.0.1:2181/locks", "10.0.0.1:2181", "/locks"],
    ["a,b/x/y", "a:2181,b:2181", "/x/y"],
    ["[::1]:2182,[fe80::2]", "[::1]:2182,[fe80::2]:2181", ""],
    ["::1", "[::1]:2181", ""],
    ["2001:db8::7/r", "[2001:db8::7]:2181", "/r"],
    ["zk/", "zk:2181", "/"],
  ];
  for (const [text, hosts, chroot] of cases) {
    const parsed = parseConnectionString(text);
    assert.equal(parsed.hosts.map(hostText).join(","), hosts, text);
    assert.equal(parsed.chroot, chroot, text);
  }
  for (const text of ["", "/a", ",", "a:0", "a:65536", "a:x", "[::1", "a:1:2x", "[]:1"]) {
    assert.throws(() => parseConnectionString(text), invalid, text);
  }
});

test("hosts are tried in turn, in an order of the client's own", () => {
  const hosts = ["a", "b", "c"].map((host) => ({ host, port: 1 }));
  const orders = new Set<string>();
  for (let n = 0; n < 200; n++) {
    const ring = new HostRing(hosts, systemClock);
    const round = [ring.next(), ring.next(), ring.next()].map(({ host }) => host);
    assert.deepEqual([...round].sort(), ["a", "b", "c"]);
    assert.equal(ring.next().host, round[0]);
    orders.add(round.join(""));
  }
  assert.equal(orders.size, 6);
});

test("paths that a server would refuse are refused before they are sent", () => {
  for (const path of ["/", "/a", "/a/b.c", "/a/..b", "/ä/漢", "/a b", "/a/.../b"]) checkPath(path);
  const wrong = [
    "",
    "a",
    "a/b",
    "/a/",
    "//",
    "/a//b",
    "/.",
    "/a/../b",
    "/a/.",
    "/a\0",
    "/\u001f",
    "/\u007f",
    "/\u0085",
  ];
  for (const path of [...wrong, "/\ud83d\ude00", "/\ud800", "/\ue000", "/\uf8ff", "/\ufff0"]) {
    assert.throws(() => checkPath(path), invalid, JSON.stringify(path));
  }
  checkPath("/queue/", true);
  assert.throws(() => checkPath("/queue//", true), invalid);
});

test("a chroot is put in front and taken off again", () => {
  const chroot = new Chroot("/app");
  for (const [client, server] of [
    ["/", "/app"],
    ["/a", "/app/a"],
    ["/app", "/app/app"],
  ] as const) {
    assert.equal(chroot.toServer(client), server);
    assert.equal(chroot.toClient(server), client);
  }
  assert.equal(chroot.toServer("/", true), "/app/");
  assert.equal(chroot.toClient("/apple"), "/apple");
  assert.equal(new Chroot("/").toServer("/a"), "/a");
  assert.throws(() => new Chroot("/app/"), invalid);
});

test("with the default time-outs a holder gives up before its follower's leader can grant to another", () => {
  // Defaults of ZooKeeper: tickTime 2,000 ms, syncLimit 5. The follower may answer pings for so long without a leader.
  assert.equal(leaderLagMs(2_000, 5), DEFAULT_LEADER_LAG_MS);
  const sessionMs = 30_000;
  const { trustMs, pingIntervalMs, readTimeoutMs, connectTimeoutMs } = sessionTiming(
    sessionMs,
    DEFAULT_LEADER_LAG_MS,
    3,
  );
  // The worst case: the leader heard of the session for the last time when the follower was cut off (0 ms), and the follower
  // answers a last ping just before it gives up. The leader ends the session after the time-out.
  const lastAnsweredPingSentAt = DEFAULT_LEADER_LAG_MS;
  assert.ok(lastAnsweredPingSentAt + trustMs < sessionMs);
  // A dead link is noticed in time to try every server once.
  assert.ok(readTimeoutMs + pingIntervalMs <= sessionMs - DEFAULT_LEADER_LAG_MS);
  assert.ok(connectTimeoutMs * 3 <= sessionMs - DEFAULT_LEADER_LAG_MS);
  // Against a standalone server the whole time-out counts, less the margin for clocks that run at different rates.
  assert.equal(sessionTiming(10_000, 0, 1).trustMs, 10_000 - 100 - 2);
  assert.equal(sessionTiming(600_000, 0, 1).pingIntervalMs, 10_000);
});

test("options that are wrong are refused before anything is tried", async () => {
  for (const options of [
    { sessionTimeoutMs: 999 },
    { sessionTimeoutMs: Number.NaN },
    { sessionTimeoutMs: 10_000, leaderLagMs: 9_001 },
    { maxRequests: 0 },
    { nudgeMs: -1 },
    { session: { id: 1n, password: Buffer.alloc(3) } },
    { auth: [{ scheme: "", secret: "" }] },
  ]) {
    await assert.rejects(
      ZooKeeper.connect("127.0.0.1:1", options),
      invalid,
      JSON.stringify(options, (_, v) => String(v)),
    );
  }
  await assert.rejects(ZooKeeper.connect(""), invalid);
  await assert.rejects(ZooKeeper.connect("127.0.0.1:1", { tls: { cert: "nonsense" } }), invalid);
});

test("a digest id is what the server stores", () => {
  assert.equal(digestId("super", "test"), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
  assert.throws(() => digestId("a:b", "c"), invalid);
});
