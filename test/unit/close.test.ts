/** Closing while the engine does not answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseEngine } from "../../src/engine/lease-engine.ts";
import { MemorySpace } from "../../src/engines/memory/space.ts";
import { MemoryStore } from "../../src/engines/memory/store.ts";
import { connect, LockLostError } from "../../src/index.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

test("close ends within seconds though the server never answers, and the signal says why", async () => {
  const clock = new ManualClock();
  const store = new MemoryStore(new MemorySpace(), clock);
  const locks = await connect(new LeaseEngine(store, clock), { ttlMs: 600_000 });
  const lock = await locks.acquire("report");
  const { signal } = lock;
  store.release = () => new Promise(() => {});
  let closed = false;
  const closing = locks.close().then(() => {
    closed = true;
  });
  await clock.advance(1_000);
  assert.equal(closed, false, "a release under way is waited for");
  assert.ok(signal.reason instanceof LockLostError && signal.reason.reason === "closed");
  await clock.advance(9_000);
  assert.equal(closed, true);
  await closing;
});
