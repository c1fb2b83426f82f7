/** Public incidents: what nodes forget, scripts and counters and all. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { startRedis } from "../../../servers/redis.ts";
import { redlock } from "../../../src/engines/redlock/index.ts";
import { connect, type LockManager } from "../../../src/index.ts";
import { eventually, pause, rejectsWith, within } from "../../../src/testing/expect.ts";
import { AdjustableClock } from "../../../src/testing/pausable-clock.ts";
import { startDeployment, TERMS, type Deployment } from "./deployment.ts";

const SOON_MS = 8_000;
/** So that a node that was restarted has its vote again soon. */
const BRIEF = { maxTtlMs: 1_000 };

describe("scripts", () => {
  let deployment: Deployment;
  before(async () => (deployment = await startDeployment(3)));
  after(async () => await deployment.stop());

  const flush = async (): Promise<void> => {
    await Promise.all(deployment.servers.map((server) => server.command("SCRIPT", "FLUSH")));
  };

  test("incident 50: nodes that have forgotten the scripts are sent them again, while holding and waiting", async () => {
    const [left, right] = await Promise.all([deployment.connect(), deployment.connect()]);
    const lock = await left.acquire("flushed");
    const waiting = right.acquire("flushed");
    await pause(100);
    await flush();
    await lock.renew();
    await flush();
    await lock.release();
    const next = await within(SOON_MS, "the waiter", waiting);
    assert.ok(next.token > lock.token);
    await flush();
    assert.equal(await left.tryAcquire("flushed"), null);
    await next.release();
  });

  test("incident 21: names that were used, waited for or left leave no key on any node; tokens still grow", async () => {
    const rememberMs = 1_000;
    const [left, right] = await Promise.all([deployment.connect({ rememberMs }), deployment.connect({ rememberMs })]);
    const sizes = (): Promise<unknown[]> =>
      Promise.all(deployment.servers.map((server) => server.command("KEYS", "holdfast:redlock:*:used *")));
    const first = await left.acquire("used 0", { ttlMs: 500 });
    await first.release();
    const use = (locks: LockManager, n: number): Promise<void> => locks.request(`used ${n}`, { ttlMs: 500 }, () => {});
    await Promise.all(Array.from({ length: 150 }, (_, n) => Promise.all([use(left, n), use(right, n)])));
    await left.acquire("used and left", { ttlMs: 500, maxHoldMs: 200 });
    assert.ok((await sizes()).flat().length >= 2 * 150, "they are remembered for a while");
    await eventually(SOON_MS, "the keys are gone", async () => (await sizes()).flat().length === 0);
    const again = await left.acquire("used 0");
    assert.ok(again.token > first.token);
    await again.release();
  });

  test("incidents 13, 50: a renewal that has to be sent again does not overtake the release that came after it", async () => {
    const [locks, other] = await Promise.all([deployment.connect(), deployment.connect()]);
    for (const turns of [0, 1, 1, 2]) {
      const lock = await locks.acquire("renewed");
      await flush();
      await (await other.acquire("loads all scripts but the one for renewals")).release();
      const renewing = lock.renew().catch(() => {});
      for (let each = 0; each < turns; each++) await turn();
      await lock.release();
      await renewing;
      await (await within(SOON_MS / 4, "the next one", other.acquire("renewed"))).release();
    }
  });
});

describe("nodes", () => {
  test("incident 57: tokens grow though every node that knew the last one has been emptied, one after the other", async (t) => {
    const deployment = await startDeployment(3, { terms: BRIEF });
    t.after(() => deployment.stop());
    const { servers } = deployment;
    const nextToken = async (locks: LockManager): Promise<bigint> => {
      const lock = await within(SOON_MS, "a grant", locks.acquire("token", { ttlMs: 500 }));
      await lock.release();
      return lock.token;
    };
    // Half an hour ahead: no later proposal reaches this token by itself.
    const last = await nextToken(await deployment.connect({ clock: new AdjustableClock(1_800_000) }, 500));
    const locks = await deployment.connect({}, 500);
    await servers[0]?.restartEmpty();
    await pause(2 * BRIEF.maxTtlMs);
    await servers[1]?.kill();
    const second = await nextToken(locks);
    assert.ok(second > last, `${second} after ${last}`);
    await servers[1]?.restartEmpty();
    await pause(2 * BRIEF.maxTtlMs);
    await servers[2]?.kill();
    const third = await nextToken(locks);
    assert.ok(third > second, `${third} after ${second}`);
  });

  test("incident 47: many clients find fresh nodes at once: one deployment, and everybody is served", async (t) => {
    const servers = await Promise.all(Array.from({ length: 3 }, () => startRedis()));
    const urls = servers.map(({ url }) => url);
    const open = (): Promise<LockManager> => connect(redlock({ urls, ...TERMS, ...BRIEF }), { ttlMs: 500 });
    const managers = await Promise.all(Array.from({ length: 4 }, open));
    t.after(async () => {
      await Promise.all(managers.map((locks) => locks.close()));
      await Promise.all(servers.map((server) => server.stop()));
    });
    let inside = 0;
    const tokens = await Promise.all(
      managers.map((locks) =>
        locks.request("first", { waitMs: SOON_MS }, async (lock) => {
          assert.equal(++inside, 1);
          await pause(5);
          inside--;
          return lock.token;
        }),
      ),
    );
    assert.equal(new Set(tokens).size, managers.length);
  });

  test("incident 58: a node that may evict locks is refused, by name", async (t) => {
    const settings = ["maxmemory 50mb", "maxmemory-policy allkeys-lru"];
    const servers = await Promise.all([startRedis(), startRedis(), startRedis({ settings })]);
    t.after(() => Promise.all(servers.map((server) => server.stop())));
    const error = await rejectsWith("CONFIG", connect(redlock({ urls: servers.map(({ url }) => url), ...TERMS })));
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${servers[2].port} evicts`));
  });
});
