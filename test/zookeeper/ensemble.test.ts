/** One session, three servers: it moves on when one dies, freezes or loses its place. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ZooKeeperServer } from "../../servers/zookeeper.ts";
import { startEnsemble, type ZooKeeperEnsemble } from "../../servers/zookeeper-ensemble.ts";
import { ConnectionLossError, ensembleSettings, parseConnectionString, ZooKeeper } from "../../src/zookeeper/index.ts";
import { systemClock } from "../../src/engine/clock.ts";

let ensemble: ZooKeeperEnsemble;

before(async () => {
  ensemble = await startEnsemble();
});

after(async () => {
  await ensemble.stop();
});

async function until(condition: () => Promise<boolean> | boolean, withinMs = 30_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `not true within ${withinMs} ms`);
    await sleep(10);
  }
}

async function withClient(use: (zk: ZooKeeper) => Promise<void>, sessionTimeoutMs = 15_000): Promise<void> {
  const zk = await ZooKeeper.connect(ensemble.addresses, { sessionTimeoutMs });
  try {
    await use(zk);
  } finally {
    await zk.close();
  }
}

function serverOf(zk: ZooKeeper): ZooKeeperServer {
  const server = ensemble.servers.find(({ address }) => address === zk.server);
  assert.ok(server, `connected to ${zk.server}`);
  return server;
}

test("a session moves to another member when its own dies; nodes, watches and what is asked go with it", async () => {
  await withClient(async (witness) => {
    await withClient(async (zk) => {
      const { id } = zk.session;
      await zk.create("/mover", "", { mode: "ephemeral" });
      const events: string[] = [];
      await zk.getData("/mover", { watch: ({ type }) => events.push(type) });
      const server = serverOf(zk);
      await server.kill();
      await zk.setData("/mover", "x").catch((error: unknown) => assert.ok(error instanceof ConnectionLossError));
      await until(() => zk.state === "connected" && zk.server !== undefined);
      assert.notEqual(zk.server, server.address);
      assert.equal(zk.session.id, id);
      await zk.setData("/mover", "y");
      assert.deepEqual(events, ["changed"]);
      await server.restart();
      await witness.sync("/mover");
      assert.equal((await witness.exists("/mover"))?.ephemeralOwner, id);
    });
    await witness.sync("/mover");
    assert.equal(await witness.exists("/mover"), null);
  });
});

test("a session moves on when its server freezes", async () => {
  await withClient(async (zk) => {
    const { id } = zk.session;
    await until(async () => (await ensemble.followers()).length === 2);
    const server = serverOf(zk);
    server.freeze();
    try {
      await until(() => zk.state === "connected" && zk.server !== server.address);
      assert.equal(zk.session.id, id);
      if ((await ensemble.followers()).length === 1) await zk.sync();
    } finally {
      server.thaw();
    }
  }, 6_000);
});

test("leader killed under load: every request settles, nothing acknowledged is lost, nothing is applied twice", async () => {
  await withClient(async (witness) => {
    await until(async () => (await ensemble.followers()).length === 2);
    await witness.create("/load");
    const acknowledged: string[] = [];
    const unknown: string[] = [];
    const stop = new AbortController();
    const work = async (worker: number): Promise<void> => {
      await withClient(async (zk) => {
        for (let n = 0; !stop.signal.aborted; n++) {
          const name = `w${worker}-${n}`;
          try {
            await zk.create(`/load/${name}`);
            acknowledged.push(name);
          } catch (error) {
            assert.ok(error instanceof ConnectionLossError, String(error));
            if (error.outcome === "unknown") unknown.push(name);
          }
        }
      });
    };
    const workers = Array.from({ length: 8 }, (_, worker) => work(worker));
    await sleep(500);
    const before = acknowledged.length;
    const leader = await ensemble.leader();
    await leader.kill();
    const killed = acknowledged.length;
    await until(() => acknowledged.length > killed + 50);
    stop.abort();
    await Promise.all(workers);
    assert.ok(before > 0);
    await witness.sync("/load");
    const { children } = await witness.getChildren("/load");
    const there = new Set(children);
    assert.deepEqual(
      acknowledged.filter((name) => !there.has(name)),
      [],
    );
    const known = new Set([...acknowledged, ...unknown]);
    assert.deepEqual(
      children.filter((name) => !known.has(name)),
      [],
    );
    await leader.restart();
  });
});

test("the whole ensemble restarts: the session is still there", async () => {
  await withClient(async (zk) => {
    const { id } = zk.session;
    await zk.create("/all", "", { mode: "ephemeral" });
    await Promise.all(ensemble.servers.map((server) => server.kill()));
    await until(() => zk.state === "suspended");
    await Promise.all(ensemble.servers.map((server) => server.restart()));
    await until(() => zk.state === "connected");
    assert.equal(zk.session.id, id);
    assert.equal((await zk.exists("/all"))?.ephemeralOwner, id);
  }, 30_000);
});

test("what a lock has to know of the ensemble is told by its servers", async () => {
  const [host] = parseConnectionString(ensemble.addresses).hosts;
  assert.ok(host);
  await until(async () => (await ensemble.servers[0]?.mode()) !== undefined);
  const settings = await ensembleSettings(host, { withinMs: 5_000, clock: systemClock });
  assert.deepEqual(settings, { serving: true, standalone: false, tickTimeMs: 500, syncLimit: 10 });
});
