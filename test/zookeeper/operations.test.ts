/** Every operation and every kind of node, against a real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import {
  CREATOR_ACL,
  digestId,
  ensembleSettings,
  fourLetterWord,
  OPEN_ACL,
  parseConnectionString,
  Permission,
  READ_ACL,
  TransactionError,
  type WatchEvent,
  ZooKeeper,
} from "../../src/zookeeper/index.ts";
import { systemClock } from "../../src/engine/clock.ts";

let server: ZooKeeperServer;
let zk: ZooKeeper;

before(async () => {
  server = await startZooKeeper();
  zk = await ZooKeeper.connect(server.address, { sessionTimeoutMs: 10_000 });
});

after(async () => {
  await zk.close();
  await server.stop();
});

/** A client of its own, closed at the end whatever happens. */
async function withClient<T>(
  options: Parameters<typeof ZooKeeper.connect>[1] & { path?: string },
  use: (client: ZooKeeper) => Promise<T>,
): Promise<T> {
  const { path = "", ...rest } = options;
  const client = await ZooKeeper.connect(`${server.address}${path}`, { sessionTimeoutMs: 10_000, ...rest });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** The next event of a watch, as a promise. */
function nextEvent(): { watch: (event: WatchEvent) => void; event: Promise<WatchEvent> } {
  const { promise, resolve } = Promise.withResolvers<WatchEvent>();
  return { watch: resolve, event: promise };
}

async function until(condition: () => Promise<boolean> | boolean, withinMs = 10_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `not true within ${withinMs} ms`);
    await sleep(20);
  }
}

test("persistent node: create, read, change, delete", async () => {
  const created = await zk.create("/plain", "one");
  assert.equal(created.path, "/plain");
  assert.equal(created.stat.ephemeralOwner, 0n);
  const { data, stat } = await zk.getData("/plain");
  assert.equal(data.toString(), "one");
  assert.deepEqual(stat, created.stat);
  assert.deepEqual(await zk.exists("/plain"), stat);
  const changed = await zk.setData("/plain", Buffer.from("three"), { version: 0 });
  assert.equal(changed.version, 1);
  assert.equal(changed.dataLength, 5);
  assert.ok(changed.mzxid > changed.czxid);
  assert.ok(Math.abs(changed.mtimeMs - Date.now()) < 60_000);
  await assert.rejects(zk.setData("/plain", "", { version: 0 }), { code: "BAD_VERSION", path: "/plain" });
  await assert.rejects(zk.delete("/plain", { version: 0 }), { code: "BAD_VERSION" });
  await zk.delete("/plain", { version: 1 });
  assert.equal(await zk.exists("/plain"), null);
});

test("errors of the server have codes", async () => {
  await zk.create("/errors/".slice(0, -1));
  await zk.create("/errors/ephemeral", "", { mode: "ephemeral" });
  await assert.rejects(zk.create("/errors"), { code: "NODE_EXISTS", serverCode: -110 });
  await assert.rejects(zk.create("/none/child"), { code: "NO_NODE" });
  await assert.rejects(zk.getData("/none"), { code: "NO_NODE" });
  await assert.rejects(zk.getChildren("/none"), { code: "NO_NODE" });
  await assert.rejects(zk.delete("/none"), { code: "NO_NODE" });
  await assert.rejects(zk.delete("/errors"), { code: "NOT_EMPTY" });
  await assert.rejects(zk.create("/errors/ephemeral/child"), { code: "NO_CHILDREN_FOR_EPHEMERALS" });
  await assert.rejects(zk.setAcl("/errors", [{ permissions: 31, scheme: "nonsense", id: "x" }]), {
    code: "INVALID_ACL",
  });
  await assert.rejects(zk.create("/errors/ttl", "", { mode: "ttl" }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(zk.create("errors"), { code: "INVALID_ARGUMENT" });
});

test("data is bytes: empty, binary, long", async () => {
  const long = Buffer.alloc(1_000_000, 7);
  for (const [name, bytes] of [
    ["empty", Buffer.alloc(0)],
    ["zeros", Buffer.from([0, 0, 255])],
    ["long", long],
  ] as const) {
    await zk.create(`/bytes-${name}`, bytes);
    assert.deepEqual((await zk.getData(`/bytes-${name}`)).data, bytes);
  }
});

test("a request up to jute.maxbuffer passes, the next byte is refused here and the session lives on", async () => {
  const { path } = await zk.create("/limit");
  // xid, op code, path, the data's length, version: 4 + 4 + (4 + 6) + 4 + 4
  const overhead = 26;
  const most = 1_048_575 - overhead;
  await zk.setData(path, Buffer.alloc(most));
  await assert.rejects(zk.setData(path, Buffer.alloc(most + 1)), { code: "PACKET_TOO_LARGE" });
  assert.equal((await zk.getData(path)).data.length, most);
  assert.equal(zk.state, "connected");
});

test("ephemeral nodes end with their session", async () => {
  await withClient({}, async (client) => {
    const { stat } = await client.create("/ephemeral", "", { mode: "ephemeral" });
    assert.equal(stat.ephemeralOwner, client.session.id);
    assert.deepEqual(await client.getEphemerals(), ["/ephemeral"]);
    assert.notEqual(await zk.exists("/ephemeral"), null);
  });
  assert.equal(await zk.exists("/ephemeral"), null);
});

test("sequential nodes get ten digits from their parent's counter, which counts every child", async () => {
  await zk.create("/seq");
  const names: string[] = [];
  for (const mode of ["persistent-sequential", "ephemeral-sequential", "persistent-sequential"] as const) {
    names.push((await zk.create("/seq/n-", "", { mode })).path);
  }
  await zk.create("/seq/plain");
  names.push((await zk.create("/seq/", "", { mode: "ephemeral-sequential" })).path);
  assert.deepEqual(names, ["/seq/n-0000000000", "/seq/n-0000000001", "/seq/n-0000000002", "/seq/0000000004"]);
  const { children, stat } = await zk.getChildren("/seq");
  assert.deepEqual(children.sort(), ["0000000004", "n-0000000000", "n-0000000001", "n-0000000002", "plain"]);
  assert.equal(stat.numChildren, 5);
});

test("container nodes go when their last child has gone", async () => {
  const { stat } = await zk.create("/container", "", { mode: "container" });
  assert.equal(stat.ephemeralOwner, 0n);
  await zk.create("/container/child", "", { mode: "ephemeral" });
  await sleep(1_500);
  assert.notEqual(await zk.exists("/container"), null);
  await zk.delete("/container/child");
  await until(async () => (await zk.exists("/container")) === null);
});

test("TTL nodes go when they have been left alone", async () => {
  await zk.create("/ttl", "", { mode: "ttl", ttlMs: 600 });
  const { path } = await zk.create("/ttl-", "", { mode: "ttl-sequential", ttlMs: 600 });
  assert.match(path, /^\/ttl-\d{10}$/);
  await zk.create("/ttl/child", "", { mode: "ephemeral" });
  await until(async () => (await zk.exists(path)) === null);
  assert.notEqual(await zk.exists("/ttl"), null, "it has a child");
  await zk.delete("/ttl/child");
  await until(async () => (await zk.exists("/ttl")) === null);
});

test("multi: all or nothing, and which part failed", async () => {
  const results = await zk.multi([
    { kind: "create", path: "/multi", data: "a" },
    { kind: "create", path: "/multi/n-", mode: "ephemeral-sequential" },
    { kind: "setData", path: "/multi", data: "b", version: 0 },
    { kind: "check", path: "/multi", version: 1 },
    { kind: "create", path: "/multi/c", mode: "container" },
    { kind: "create", path: "/multi/t", mode: "ttl", ttlMs: 60_000 },
    { kind: "delete", path: "/multi/c" },
  ]);
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ["create", "create", "setData", "check", "create", "create", "delete"],
  );
  assert.ok(results[1]?.kind === "create" && results[1].path === "/multi/n-0000000000");
  assert.ok(results[2]?.kind === "setData" && results[2].stat.version === 1);
  await assert.rejects(
    zk.multi([
      { kind: "setData", path: "/multi", data: "c" },
      { kind: "check", path: "/multi", version: 1 },
      { kind: "create", path: "/multi/other" },
    ]),
    (error) => {
      assert.ok(error instanceof TransactionError);
      assert.deepEqual([error.index, error.code, error.path], [1, "BAD_VERSION", "/multi"]);
      return true;
    },
  );
  assert.equal((await zk.getData("/multi")).data.toString(), "b");
  assert.equal(await zk.exists("/multi/other"), null);
  assert.deepEqual(await zk.multi([]), []);
});

test("check", async () => {
  const { path } = await zk.create("/check");
  await zk.check(path, 0);
  await assert.rejects(zk.check(path, 1), { code: "BAD_VERSION" });
  await assert.rejects(zk.check("/none", 0), { code: "NO_NODE" });
});

test("sync", async () => {
  await zk.sync();
  await zk.sync("/none");
});

test("watches fire once, for what was read", async () => {
  const { path } = await zk.create("/watched");
  const data = nextEvent();
  const children = nextEvent();
  const absent = nextEvent();
  const present = nextEvent();
  await zk.getData(path, { watch: data.watch });
  await zk.getChildren(path, { watch: children.watch });
  await zk.exists(`${path}/child`, { watch: absent.watch });
  await zk.exists(path, { watch: present.watch });
  assert.equal(zk.watchCount, 4);
  await zk.create(`${path}/child`);
  assert.deepEqual(await absent.event, { type: "created", path: `${path}/child` });
  assert.deepEqual(await children.event, { type: "children", path });
  await zk.setData(path, "x");
  assert.deepEqual(await data.event, { type: "changed", path });
  assert.deepEqual(await present.event, { type: "changed", path });
  assert.equal(zk.watchCount, 0);
  // A watch on what is not there is set by exists alone.
  await assert.rejects(zk.getData("/none", { watch: data.watch }), { code: "NO_NODE" });
  assert.equal(zk.watchCount, 0);
});

test("a deletion is one event for the data and the children of a node", async () => {
  const { path } = await zk.create("/deleted");
  const events: WatchEvent[] = [];
  const watch = (event: WatchEvent): void => void events.push(event);
  await zk.getData(path, { watch });
  await zk.getChildren(path, { watch });
  await withClient({}, (other) => other.delete(path));
  await zk.sync();
  assert.deepEqual(events, [{ type: "deleted", path }]);
});

test("an event comes before the reply to the change of one's own that caused it", async () => {
  const { path } = await zk.create("/order");
  const order: string[] = [];
  await zk.getData(path, { watch: () => order.push("event") });
  await zk.setData(path, "x").then(() => order.push("reply"));
  assert.deepEqual(order, ["event", "reply"]);
});

test("persistent and recursive watches stay until they are removed", async () => {
  const { path } = await zk.create("/stay");
  const here: string[] = [];
  const below: string[] = [];
  const hereWatcher = (event: WatchEvent): void => void here.push(`${event.type} ${event.path}`);
  await zk.addWatch(path, hereWatcher);
  await zk.addWatch("/", (event) => below.push(`${event.type} ${event.path}`), { recursive: true });
  for (let n = 0; n < 2; n++) {
    await zk.create(`${path}/child`, "");
    await zk.setData(`${path}/child`, "x");
    await zk.delete(`${path}/child`);
  }
  const round = [`created ${path}/child`, `changed ${path}/child`, `deleted ${path}/child`];
  assert.deepEqual(below, [...round, ...round]);
  assert.deepEqual(
    here,
    Array.from({ length: 4 }, () => `children ${path}`),
  );
  await zk.removeWatches(path, hereWatcher);
  await zk.removeWatches("/");
  await zk.setData(path, "y");
  assert.equal(here.length, 4);
  assert.equal(below.length, 6);
  assert.equal(zk.watchCount, 0);
  assert.doesNotMatch(await server.ask("wchp"), /stay/);
});

test("removing one watch leaves the others on the path, here and on the server", async () => {
  const { path } = await zk.create("/removal");
  const gone: WatchEvent[] = [];
  const goneWatcher = (event: WatchEvent): void => void gone.push(event);
  const kept = nextEvent();
  const keptChildren = nextEvent();
  await zk.getData(path, { watch: goneWatcher });
  await zk.getData(path, { watch: kept.watch });
  await zk.removeWatches(path, goneWatcher);
  // To drop a persistent watch, a 3.8 server drops all watches of the path: the others are set again.
  await zk.getChildren(path, { watch: keptChildren.watch });
  await zk.addWatch(path, goneWatcher);
  await zk.removeWatches(path, goneWatcher);
  gone.length = 0;
  await zk.create(`${path}/child`);
  await zk.setData(path, "x");
  assert.equal((await kept.event).type, "changed");
  assert.equal((await keptChildren.event).type, "children");
  assert.deepEqual(gone, []);
  await zk.removeWatches(path, goneWatcher);
});

test("a watch that is being set while another is removed is not lost", async () => {
  const { path } = await zk.create("/removal-race");
  for (let n = 0; n < 50; n++) {
    const old = (): void => assert.fail("it was removed");
    const fresh = nextEvent();
    await zk.getData(path, { watch: old });
    const [removed, set] = [zk.removeWatches(path, old), zk.getData(path, { watch: fresh.watch })];
    await Promise.all([removed, set, zk.setData(path, String(n))]);
    assert.equal((await fresh.event).type, "changed");
    const other = nextEvent();
    const [reading, removing] = [zk.getData(path, { watch: other.watch }), zk.removeWatches(path, old)];
    await Promise.all([reading, removing]);
    await zk.setData(path, "x");
    assert.equal((await other.event).type, "changed");
  }
});

test("access control lists", async () => {
  const open = await zk.create("/open");
  assert.deepEqual((await zk.getAcl(open.path)).acl, OPEN_ACL);
  const stat = await zk.setAcl(open.path, READ_ACL, { version: 0 });
  assert.equal(stat.aversion, 1);
  await assert.rejects(zk.setData(open.path, ""), { code: "NO_AUTH" });
  await assert.rejects(zk.setAcl(open.path, OPEN_ACL), { code: "NO_AUTH" });
  const digest = { permissions: Permission.all, scheme: "digest", id: digestId("anna", "secret") };
  await zk.create("/private", "x", { acl: [digest, { permissions: Permission.read, scheme: "ip", id: "10.1.1.1" }] });
  await assert.rejects(zk.getData("/private"), { code: "NO_AUTH", path: "/private" });
  await withClient({ auth: [{ scheme: "digest", secret: "anna:secret" }] }, async (anna) => {
    assert.equal((await anna.getData("/private")).data.toString(), "x");
    assert.ok((await anna.whoAmI()).some(({ scheme, id }) => scheme === "digest" && id.startsWith("anna")));
  });
  await withClient({}, async (late) => {
    await assert.rejects(late.getData("/private"), { code: "NO_AUTH" });
    await late.addAuth({ scheme: "digest", secret: Buffer.from("anna:secret") });
    assert.equal((await late.getData("/private")).data.toString(), "x");
  });
});

test("a client with credentials creates nodes of its own, by default", async () => {
  await withClient({ auth: [{ scheme: "digest", secret: "bob:secret" }] }, async (bob) => {
    const { path } = await bob.create("/bobs");
    const { acl } = await bob.getAcl(path);
    assert.deepEqual(acl, [{ permissions: Permission.all, scheme: "digest", id: digestId("bob", "secret") }]);
    await bob.create("/bobs-too", "", { acl: CREATOR_ACL });
    await bob.create("/everybodys", "", { acl: OPEN_ACL });
  });
  await assert.rejects(zk.getData("/bobs"), { code: "NO_AUTH" });
  await zk.getData("/everybodys");
});

test("authentication that the server refuses", async () => {
  await assert.rejects(
    withClient({ auth: [{ scheme: "nonsense", secret: "x" }] }, () => Promise.resolve()),
    {
      code: "AUTH_FAILED",
    },
  );
  await withClient({}, async (client) => {
    await assert.rejects(client.addAuth({ scheme: "nonsense", secret: "x" }), { code: "AUTH_FAILED" });
    assert.equal(await client.exists("/none"), null, "the session goes on without it");
  });
});

test("chroot: paths, results and events are below it", async () => {
  await zk.create("/app");
  await withClient({ path: "/app" }, async (client) => {
    const { path } = await client.create("/n-", "", { mode: "ephemeral-sequential" });
    assert.equal(path, "/n-0000000000");
    const first = nextEvent();
    const inner = nextEvent();
    await client.getChildren("/", { watch: first.watch });
    await client.exists("/x", { watch: inner.watch });
    await client.multi([{ kind: "create", path: "/x" }]);
    assert.deepEqual(await first.event, { type: "children", path: "/" });
    assert.deepEqual(await inner.event, { type: "created", path: "/x" });
    assert.deepEqual(await client.getEphemerals(), ["/n-0000000000"]);
    assert.deepEqual((await client.getChildren("/")).children.sort(), ["n-0000000000", "x"]);
    await client.sync();
    await assert.rejects(client.getData("/none"), { message: "getData /none: NO_NODE (-101)" });
    const sequential = await client.create("/", "", { mode: "persistent-sequential" });
    assert.equal(sequential.path, "/0000000002");
  });
  assert.deepEqual((await zk.getChildren("/app")).children.sort(), ["0000000002", "x"]);
  await withClient({ path: "/not-there" }, (client) => assert.rejects(client.create("/x"), { code: "NO_NODE" }));
});

test("requests are pipelined: thousands at once, in order", async () => {
  await zk.create("/many");
  const created = await Promise.all(
    Array.from({ length: 5_000 }, () => zk.create("/many/n-", "", { mode: "ephemeral-sequential" })),
  );
  created.forEach(({ path }, n) => assert.equal(path, `/many/n-${String(n).padStart(10, "0")}`));
  assert.equal((await zk.getChildren("/many")).children.length, 5_000);
  await Promise.all(created.map(({ path }) => zk.delete(path)));
});

test("an abort ends the wait, and the session goes on in step", async () => {
  await assert.rejects(zk.getData("/zookeeper", { signal: AbortSignal.abort(new Error("before")) }), /before/);
  const controller = new AbortController();
  // The first goes out at once, what is asked while it is under way at the end of the turn.
  const sent = zk.create("/aborted-sent", "", { mode: "ephemeral", signal: controller.signal });
  const waiting = zk.create("/aborted", "", { signal: controller.signal });
  controller.abort(new Error("now"));
  await assert.rejects(sent, /now/);
  await assert.rejects(waiting, /now/);
  await zk.getData("/zookeeper");
  assert.notEqual(await zk.exists("/aborted-sent"), null, "it had been sent");
  assert.equal(await zk.exists("/aborted"), null, "it had not been sent");
  const late = new AbortController();
  const pending = zk.getData("/zookeeper", { signal: late.signal });
  await new Promise((resolve) => process.nextTick(() => setImmediate(resolve)));
  late.abort(new Error("late"));
  await pending.catch((error: Error) => assert.equal(error.message, "late"));
  assert.deepEqual((await zk.getChildren("/zookeeper")).children.sort(), ["config", "quota"]);
});

test("a closed client says so", async () => {
  const client = await ZooKeeper.connect(server.address);
  const lost = nextEvent();
  await client.getData("/zookeeper", { watch: lost.watch });
  const states: string[] = [];
  client.onState((state) => states.push(state));
  await Promise.all([client.close(), client.close()]);
  assert.equal(client.state, "closed");
  assert.deepEqual(states, ["closed"]);
  assert.deepEqual(await lost.event, { type: "lost", path: "/zookeeper" });
  await assert.rejects(client.getData("/zookeeper"), { code: "CLOSED" });
  await assert.rejects(client.addAuth({ scheme: "digest", secret: "a:b" }), { code: "CLOSED" });
});

test("what a server tells outside of sessions", async () => {
  const [host] = parseConnectionString(server.address).hosts;
  assert.ok(host);
  const options = { withinMs: 5_000, clock: systemClock };
  assert.equal(await fourLetterWord(host, "ruok", options), "imok");
  const settings = await ensembleSettings(host, options);
  assert.equal(settings.standalone, true);
  assert.equal(settings.tickTimeMs, 500);
  assert.equal(settings.syncLimit, undefined);
});
