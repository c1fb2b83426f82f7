/** What a session lives through, on one real server: restarts, freezes, cuts, lost replies, its own end. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startFaultProxy, type FaultProxy } from "../../servers/fault-proxy.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { ConnectionLossError, type SessionState, type WatchEvent, ZooKeeper } from "../../src/zookeeper/index.ts";

let server: ZooKeeperServer;
/** Another session, straight to the server. */
let witness: ZooKeeper;

before(async () => {
  server = await startZooKeeper();
  witness = await ZooKeeper.connect(server.address, { sessionTimeoutMs: 60_000 });
});

after(async () => {
  await witness.close();
  await server.stop();
});

interface Proxied {
  readonly zk: ZooKeeper;
  readonly proxy: FaultProxy;
  readonly states: SessionState[];
}

async function proxied(
  options: Parameters<typeof ZooKeeper.connect>[1],
  use: (each: Proxied) => Promise<void>,
): Promise<void> {
  const proxy = await startFaultProxy(server.port);
  const zk = await ZooKeeper.connect(proxy.address, { sessionTimeoutMs: 6_000, ...options });
  const states: SessionState[] = [];
  zk.onState((state) => states.push(state));
  try {
    await use({ zk, proxy, states });
  } finally {
    await zk.close();
    await proxy.close();
  }
}

async function until(condition: () => Promise<boolean> | boolean, withinMs = 15_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `not true within ${withinMs} ms`);
    await sleep(10);
  }
}

test("a session, its nodes and its watches survive a restart of the server; requests wait for it", async () => {
  const zk = await ZooKeeper.connect(server.address, { sessionTimeoutMs: 20_000 });
  try {
    const { id } = zk.session;
    await zk.create("/survivor", "", { mode: "ephemeral" });
    await witness.create("/survivor-watched");
    const events: WatchEvent[] = [];
    await zk.getData("/survivor-watched", { watch: (event) => events.push(event) });
    const states: SessionState[] = [];
    zk.onState((state) => states.push(state));
    await server.kill();
    await until(() => zk.state === "suspended");
    const waiting = zk.setData("/survivor", "later");
    await server.restart();
    assert.equal((await waiting).version, 1);
    assert.equal(zk.session.id, id);
    assert.deepEqual(states, ["suspended", "connected"]);
    assert.equal((await witness.exists("/survivor"))?.ephemeralOwner, id);
    await witness.setData("/survivor-watched", "x");
    await until(() => events.length > 0);
    assert.deepEqual(events, [{ type: "changed", path: "/survivor-watched" }]);
  } finally {
    await zk.close();
  }
});

test("incident 53: a connection cut in the middle of a packet, at every place, leaves nothing behind", async () => {
  await witness.create("/cut", Buffer.alloc(300, 65));
  await proxied({}, async ({ zk, proxy }) => {
    const { id } = zk.session;
    for (let place = 0; place < 420; place += 13) {
      proxy.set({ cutToClientAfter: 41 + place }); // 41: the answer to the connect request
      proxy.reset();
      const reads = await Promise.allSettled([zk.getData("/cut"), zk.getData("/cut")]);
      proxy.set({ cutToClientAfter: Infinity });
      for (const read of reads) {
        if (read.status === "fulfilled") assert.deepEqual(read.value.data, Buffer.alloc(300, 65));
        else assert.equal(read.reason.code, "CONNECTION_LOSS");
      }
      assert.equal((await zk.getData("/cut")).data.length, 300);
    }
    assert.equal(zk.session.id, id);
  });
});

test("a reply lost on the way: the outcome is unknown, and says so", async () => {
  await proxied({ sessionTimeoutMs: 3_000 }, async ({ zk, proxy }) => {
    proxy.set({ toClient: "drop" });
    const created = zk.create("/lost-reply", "", { mode: "ephemeral" });
    const read = zk.exists("/lost-reply");
    await until(async () => (await witness.exists("/lost-reply")) !== null);
    proxy.set({ toClient: "pass" });
    proxy.reset();
    await assert.rejects(created, (error) => {
      assert.ok(error instanceof ConnectionLossError);
      assert.equal(error.outcome, "unknown");
      return true;
    });
    assert.equal((await read)?.ephemeralOwner, zk.session.id, "a read is sent again");
  });
});

test("a dead link is noticed by the read time-out, ⅔ of the session's", async () => {
  await proxied({ sessionTimeoutMs: 3_000 }, async ({ zk, proxy, states }) => {
    await zk.exists("/");
    const fromMs = performance.now();
    proxy.set({ toClient: "stall" });
    await until(() => states.includes("suspended"));
    const tookMs = performance.now() - fromMs;
    // The last packet heard may be one ping interval old when the link dies.
    assert.ok(tookMs > 900 && tookMs < 2_900, `${tookMs} ms`);
    assert.ok(zk.remainingMs() > 0);
    proxy.set({ toClient: "pass" });
    await until(() => zk.state === "connected");
  });
});

test("incident 54: a frozen server is noticed; after the thaw the session goes on or its end is told", async () => {
  const zk = await ZooKeeper.connect(server.address, { sessionTimeoutMs: 2_000 });
  try {
    const fromMs = performance.now();
    server.freeze();
    await until(() => zk.state === "suspended", 4_000);
    assert.ok(performance.now() - fromMs < 2_000 + 500);
    // A request waits for a connection for as long as the session can be trusted: nothing hangs on a server that may
    // never come back.
    const waitingMs = performance.now();
    await assert.rejects(zk.create("/never"), { code: "CONNECTION_LOSS", outcome: "not-applied" });
    const tookMs = performance.now() - waitingMs;
    assert.ok(tookMs > 1_500 && tookMs < 4_000, `${tookMs} ms`);
    assert.ok(zk.remainingMs() <= 0);
    server.thaw();
    await until(() => zk.state === "connected" || zk.state === "expired");
    if (zk.state === "connected") await zk.getData("/zookeeper");
    else await assert.rejects(zk.getData("/zookeeper"), { code: "SESSION_EXPIRED" });
    assert.equal(await witness.exists("/never"), null);
  } finally {
    server.thaw();
    await zk.close();
  }
});

function startProgram(...args: string[]): {
  lines: string[];
  child: ReturnType<typeof spawn>;
  ended: Promise<number | null>;
} {
  const program = new URL("session-program.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const ended = new Promise<number | null>((resolve) => void child.once("close", (status) => resolve(status)));
  return { lines, child, ended };
}

test("incident 26: expiry is told after a SIGSTOP of the client that is longer than the time-out", async () => {
  const { lines, child, ended } = startProgram(server.address, "2000", "");
  try {
    await until(() => lines.includes("ready"), 30_000);
    child.kill("SIGSTOP");
    await until(async () => (await witness.exists(lines[0] ?? "")) === null);
    child.kill("SIGCONT");
    await until(() => lines.includes("SessionExpiredError"));
    assert.ok(lines.includes("expired"));
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});

test("a SIGSTOP that is shorter than the time-out leaves the session as it was", async () => {
  const { lines, child, ended } = startProgram(server.address, "6000", "");
  try {
    await until(() => lines.includes("ready"), 30_000);
    child.kill("SIGSTOP");
    await sleep(3_000);
    child.kill("SIGCONT");
    await sleep(3_000);
    assert.notEqual(await witness.exists(lines[0] ?? ""), null);
    assert.ok(!lines.includes("expired"));
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});

test("a session keeps the process alive, unless told otherwise: then only requests do", async () => {
  const kept = startProgram(server.address, "2000", "");
  const free = startProgram(server.address, "2000", "unref");
  try {
    await until(() => kept.lines.includes("ready"), 30_000);
    assert.equal(await free.ended, 0);
    assert.equal(free.lines.at(-1), "answered");
    await sleep(1_000);
    assert.equal(kept.child.exitCode, null);
  } finally {
    kept.child.kill("SIGKILL");
    await kept.ended;
  }
  for (const [path = ""] of [kept.lines, free.lines]) await until(async () => (await witness.exists(path)) === null);
});

test("4,000 watches are set again after a reconnect, and those that fired meanwhile are told", async () => {
  await witness.create("/watches");
  const names = Array.from({ length: 4_000 }, (_, n) => `/watches/a-name-of-some-length-${n}`);
  await Promise.all(names.map((name) => witness.create(name)));
  await proxied({ sessionTimeoutMs: 20_000 }, async ({ zk, proxy, states }) => {
    const changed = new Set<string>();
    const gone = new Set<string>();
    const watch = ({ type, path }: WatchEvent): void => void (type === "changed" ? changed : gone).add(path);
    await Promise.all(names.map((name, n) => (n % 2 === 0 ? zk.getData(name, { watch }) : zk.exists(name, { watch }))));
    assert.equal(zk.watchCount, 4_000);
    proxy.set({ refuse: true });
    proxy.reset();
    await until(() => zk.state === "suspended");
    await Promise.all(names.slice(0, 1_000).map((name) => witness.setData(name, "x")));
    await Promise.all(names.slice(1_000, 2_000).map((name) => witness.delete(name)));
    proxy.set({ refuse: false });
    await until(() => zk.state === "connected");
    await until(() => changed.size === 1_000 && gone.size === 1_000);
    assert.equal(zk.watchCount, 2_000);
    await Promise.all(names.slice(2_000).map((name) => witness.setData(name, "x")));
    await until(() => changed.size === 3_000);
    assert.equal(zk.watchCount, 0);
    assert.deepEqual(states, ["suspended", "connected"]);
  });
});

test("persistent watches are set again, and told that they may have missed something", async () => {
  await witness.create("/persistent");
  await proxied({}, async ({ zk, proxy }) => {
    const events: string[] = [];
    await zk.addWatch("/persistent", ({ type, path }) => events.push(`${type} ${path}`), { recursive: true });
    proxy.reset();
    await until(() => events.length === 1);
    await witness.create("/persistent/child");
    await until(() => events.length === 2);
    assert.deepEqual(events, ["missed /persistent", "created /persistent/child"]);
  });
});

test("credentials are shown again after a reconnect", async () => {
  await proxied({ auth: [{ scheme: "digest", secret: "a:b" }] }, async ({ zk, proxy, states }) => {
    await zk.addAuth({ scheme: "digest", secret: "late:b" });
    await zk.create("/mine", "x");
    proxy.reset();
    await until(() => states.length === 2);
    assert.equal((await zk.getData("/mine")).data.toString(), "x");
    const ids = (await zk.whoAmI()).filter(({ scheme }) => scheme === "digest");
    assert.equal(ids.length, 2);
  });
});

test("a session can be taken over with its id and password, and with nothing less", async () => {
  await proxied({}, async ({ zk: first, proxy }) => {
    const { id, password } = first.session;
    await first.create("/taken-over", "", { mode: "ephemeral" });
    const wrong = Buffer.from(password);
    wrong[0] = (wrong[0] ?? 0) ^ 1;
    await assert.rejects(ZooKeeper.connect(server.address, { session: { id, password: wrong } }), {
      code: "SESSION_EXPIRED",
    });
    await assert.rejects(ZooKeeper.connect(server.address, { session: { id: id + 1n, password } }), {
      code: "SESSION_EXPIRED",
    });
    proxy.set({ refuse: true }); // or the first would come back and take it over in its turn
    const second = await ZooKeeper.connect(server.address, { session: { id, password } });
    assert.equal(second.session.id, id);
    await until(() => first.state === "suspended");
    assert.notEqual(await witness.exists("/taken-over"), null);
    await second.close();
    proxy.set({ refuse: false });
    await until(() => first.state === "expired");
  });
});

test("incident 5: nobody there: connect rejects in time, and says whom it tried", async () => {
  const nobody = await startFaultProxy(1);
  const silent = await startFaultProxy(server.port);
  silent.set({ toClient: "drop" });
  const fromMs = performance.now();
  await assert.rejects(ZooKeeper.connect(`${nobody.address},127.0.0.1:1`, { connectWithinMs: 700 }), {
    code: "UNREACHABLE",
    message: /no ZooKeeper server answered within 700 ms: .*(closed|ECONN)/,
  });
  await assert.rejects(ZooKeeper.connect(silent.address, { connectWithinMs: 700, sessionTimeoutMs: 1_000 }), {
    code: "UNREACHABLE",
  });
  assert.ok(performance.now() - fromMs < 5_000);
  const aborted = ZooKeeper.connect(silent.address, { signal: AbortSignal.timeout(200) });
  await assert.rejects(aborted, { name: "TimeoutError" });
  await assert.rejects(ZooKeeper.connect(server.address, { signal: AbortSignal.abort(new Error("no")) }), /no/);
  await nobody.close();
  await silent.close();
});

test("a reply that is larger than allowed fails its request, and the session goes on", async () => {
  await proxied({ maxReplyBytes: 2_000 }, async ({ zk }) => {
    const { id } = zk.session;
    await zk.create("/large-reply", Buffer.alloc(10_000));
    const read = zk.getData("/large-reply");
    const behind = zk.exists("/large-reply");
    await assert.rejects(read, { code: "PACKET_TOO_LARGE" });
    assert.equal((await behind)?.dataLength, 10_000);
    assert.equal(zk.session.id, id);
  });
});

test("the local deadline moves with every answer, and stands still without", async () => {
  await proxied({ sessionTimeoutMs: 4_000, leaderLagMs: 1_000 }, async ({ zk, proxy }) => {
    await zk.exists("/");
    assert.equal(zk.sessionTimeoutMs, 4_000);
    const full = 4_000 - 1_000 - 40 - 2;
    assert.ok(zk.remainingMs() <= full && zk.remainingMs() > full - 900);
    await sleep(2_500);
    assert.ok(zk.remainingMs() > full - 1_900, "pings are answered every (4,000 − 1,000) / 3 ms");
    proxy.set({ toClient: "drop" });
    await until(() => zk.remainingMs() <= 0, 5_000);
    assert.equal(zk.state, "suspended", "the dead link was noticed before the deadline");
  });
});
