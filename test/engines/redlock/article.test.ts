/**
 * The three sequences in which the articles let two clients hold a lock of Redlock, each for real, on five Redis servers
 * A B C D E. With the guards off the first two end with two holders; with the guards on, never.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { HeldLock } from "../../../src/index.ts";
import { startDeployment, type Deployment } from "./deployment.ts";

const [A, B, C, D, E] = [0, 1, 2, 3, 4];
const GUARDS_OFF = { restartGuard: false, clockGuard: false };

async function on<T>(terms: object, body: (deployment: Deployment) => Promise<T>): Promise<T> {
  const deployment = await startDeployment(5, { clock: true, terms });
  try {
    return await body(deployment);
  } finally {
    await deployment.stop();
  }
}

/** What `acquire` comes to within a second: a lock, or nothing. */
async function attempt(acquiring: Promise<HeldLock>): Promise<HeldLock | undefined> {
  return await acquiring.catch((error: Error & { code?: string }) => {
    assert.ok(error.code === "LOCK_TIMEOUT" || error.code === "ENGINE_UNAVAILABLE", error.message);
    return undefined;
  });
}

/** A lock on A, B and C; then `fault` happens to C; then a client that reaches C, D and E only. */
async function twoClients(
  deployment: Deployment,
  fault: () => Promise<void>,
): Promise<[HeldLock, HeldLock | undefined]> {
  const first = await deployment.connectTo([A, B, C]);
  const second = await deployment.connectTo([C, D, E]);
  const held = await first.acquire("article", { ttlMs: 3_500 });
  await fault();
  const other = await attempt(second.acquire("article", { waitMs: 1_000, ttlMs: 3_500 }));
  return [held, other];
}

describe("sequence 1: C is restarted and has forgotten the lock", () => {
  test("guards off: two holders", async () => {
    await on(GUARDS_OFF, async (deployment) => {
      const [held, other] = await twoClients(
        deployment,
        () => deployment.servers[C]?.restartEmpty() ?? Promise.resolve(),
      );
      assert.ok(held.isHeld() && other?.isHeld(), "the articles' hole was not there");
    });
  });

  test("guards on: C has no vote, so nobody else gets it; later C votes again", async () => {
    await on({}, async (deployment) => {
      const [held, other] = await twoClients(
        deployment,
        () => deployment.servers[C]?.restartEmpty() ?? Promise.resolve(),
      );
      assert.equal(other, undefined);
      // Its holder has lost a node of its quorum, and cannot reach D and E: it is told in time.
      await pause(4_000);
      assert.equal(held.isHeld(), false);
      const all = await deployment.connect();
      const next = await all.acquire("article", { waitMs: 10_000 });
      assert.ok(next.token > held.token);
      await next.release();
      // After the quarantine C counts: a client of C, D and E alone has a quorum again.
      const third = await deployment.connectTo([C, D, E]);
      let again = await attempt(third.acquire("article", { waitMs: 1_000 }));
      for (let tries = 0; again === undefined && tries < 60; tries++) {
        await pause(250);
        again = await attempt(third.acquire("article", { waitMs: 1_000 }));
      }
      assert.ok(again !== undefined && again.token > next.token);
    });
  });
});

describe("sequence 2: the clock of C jumps forward past the lease", () => {
  const jump = (deployment: Deployment) => async (): Promise<void> => {
    await deployment.servers[C]?.setClockOffset(60_000);
  };

  test("guards off: two holders", async () => {
    await on(GUARDS_OFF, async (deployment) => {
      const [held, other] = await twoClients(deployment, jump(deployment));
      assert.ok(held.isHeld() && other?.isHeld(), "the articles' hole was not there");
    });
  });

  test("guards on: the vote of C does not count", async () => {
    await on({}, async (deployment) => {
      const [, other] = await twoClients(deployment, jump(deployment));
      assert.equal(other, undefined);
    });
  });

  test("guards on: neither does it for a client that has just started", async () => {
    await on({}, async (deployment) => {
      const first = await deployment.connectTo([A, B, C]);
      await first.acquire("article", { ttlMs: 3_500 });
      await deployment.servers[C]?.setClockOffset(60_000);
      const second = await deployment.connectTo([C, D, E]);
      assert.equal(await attempt(second.acquire("article", { waitMs: 1_000 })), undefined);
    });
  });

  test("guards on: a holder who loses one node to a jump goes on with the others", async () => {
    await on({}, async (deployment) => {
      const locks = await deployment.connect();
      const lock = await locks.acquire("article");
      await deployment.servers[C]?.setClockOffset(60_000);
      await pause(5_000);
      assert.ok(lock.isHeld());
      await lock.release();
    });
  });
});

describe("sequence 3: the owner is paused past its lease", () => {
  for (const [name, terms] of [
    ["guards off", GUARDS_OFF],
    ["guards on", {}],
  ] as const) {
    test(`${name}: it knows at once when it wakes, and its token is lower than the next one's`, async () => {
      await on(terms, async (deployment) => {
        const owner = await deployment.connect({}, 1_000);
        const lock = await owner.acquire("article", { ttlMs: 1_000 });
        const { signal } = lock;
        block(2_500); // a garbage collection, a suspended process
        assert.equal(lock.isHeld(), false);
        const next = await (await deployment.connect()).acquire("article", { waitMs: 8_000 });
        assert.ok(next.token > lock.token);
        assert.ok(signal.aborted);
        await lock.release(); // takes nothing from the next
        assert.ok(next.isHeld());
      });
    });
  }
});

/** Stops this process for so long: no timer, no reply. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
