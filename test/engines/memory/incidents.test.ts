/** Public incidents. The numbers are those of docs/incidents.md. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ask, StoreEvents } from "../../../src/engine/lease-store.ts";
import { MemorySpace } from "../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../src/engines/memory/store.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const SILENT: StoreEvents = { granted: () => {}, check: () => {}, checkAll: () => {} };

test("incident 21: 10,000 names that were used, waited for or left to run out leave nothing; tokens still grow", async () => {
  const clock = new ManualClock();
  const space = new MemorySpace();
  const store = new MemoryStore(space, clock);
  await store.open(SILENT);
  const ask = (n: number, owner: string): Ask => ({
    name: `name ${n}`,
    owner: `${owner} ${n}`,
    mode: "exclusive",
    limit: 1,
    ttlMs: 1_000,
    pendingTtlMs: 1_000,
    minHoldMs: 0,
    wait: true,
    steal: false,
    client: { clientId: "test", host: "here", pid: process.pid },
  });
  let last = 0n;
  for (let n = 0; n < 10_000; n++) {
    const answer = await store.request(ask(n, "holder"));
    assert.ok(answer.state === "held" && answer.token > last);
    last = answer.token;
    if (n % 2 === 0) await store.request(ask(n, "waiter"));
    // A third of them dies, both holder and waiter.
    if (n % 3 === 0) continue;
    await store.release(`name ${n}`, `holder ${n}`);
    await store.withdraw(`name ${n}`, `waiter ${n}`);
  }
  assert.ok(space.names().length > 3_000);
  await clock.advance(1_001);
  for (const name of space.names()) assert.deepEqual(await store.inspect(name), []);
  assert.deepEqual(space.names(), []);
  const again = await store.request(ask(0, "another"));
  assert.ok(again.state === "held" && again.token > last);
});
