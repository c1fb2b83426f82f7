/** The short way out of a queue (pass.sql) grants exactly whom the whole transaction would grant. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Ask, LeaseStore } from "../../../src/engine/lease-store.ts";
import { pause } from "../../../src/testing/expect.ts";
import { ask, database, storeOn } from "./database.ts";

const server = database();

/** The state of each in the queue, in order. */
async function states(store: LeaseStore, name: string): Promise<string[]> {
  return (await store.inspect(name)).map(
    (each) => `${each.client.clientId} ${each.token === null ? "waits" : "holds"}`,
  );
}

function asking(name: string, clientId: string, changes: Partial<Ask> = {}): Ask {
  return ask(name, { client: { clientId, host: "here", pid: 1 }, ...changes });
}

/** A queue of these, in this order. */
async function queueOf(t: TestContext, asks: readonly Ask[]): Promise<Awaited<ReturnType<typeof storeOn>>> {
  const opened = await storeOn(t, await server());
  for (const each of asks) await opened.store.request(each);
  // Now the first one knows that it stands in a row.
  await opened.store.renew(asks.slice(0, 1));
  return opened;
}

async function questions(): Promise<number> {
  return Number((await (await server()).query("SHOW GLOBAL STATUS LIKE 'Questions'"))[0]?.["Value"]);
}

test("a hand-off between exclusive requests is eight statements", async (t) => {
  const asks = ["a", "b", "c"].map((id) => asking("short", id));
  const { store, granted } = await queueOf(t, asks);
  const before = await questions();
  await store.release("short", asks[0]?.owner ?? "", 1n);
  assert.equal((await questions()) - before - 1, 8);
  assert.deepEqual(await states(store, "short"), ["b holds", "c waits"]);
  assert.ok(granted.has(asks[1]?.owner ?? ""), "the waiter of this process was told");
});

test("tokens grow over hand-offs of both kinds", async (t) => {
  const asks = ["a", "b", "c", "d", "e"].map((id, at) => asking("tokens", id, { minHoldMs: at === 2 ? 1 : 0 }));
  const { store } = await queueOf(t, asks);
  const tokens: bigint[] = [];
  for (const each of asks) {
    const token = (await store.inspect("tokens"))[0]?.token;
    assert.ok(token !== null && token !== undefined);
    tokens.push(token);
    await pause(3);
    await store.release("tokens", each.owner, token);
  }
  assert.deepEqual(
    tokens,
    [...new Set(tokens)].sort((left, right) => Number(left - right)),
  );
  assert.deepEqual(await states(store, "tokens"), []);
});

test("readers behind a writer come in together", async (t) => {
  const shared = { mode: "shared", limit: Infinity } as const;
  const asks = [
    asking("readers", "w"),
    asking("readers", "r1", shared),
    asking("readers", "r2", shared),
    asking("readers", "w2"),
  ];
  const { store } = await queueOf(t, asks);
  await store.release("readers", asks[0]?.owner ?? "", 1n);
  assert.deepEqual(await states(store, "readers"), ["r1 holds", "r2 holds", "w2 waits"]);
});

test("a waiter whose lease is over is passed over and removed", async (t) => {
  const short = { ttlMs: 100, pendingTtlMs: 100 };
  const asks = [asking("over", "a"), asking("over", "dead", short), asking("over", "c")];
  const { store } = await queueOf(t, asks);
  await pause(200);
  await store.release("over", asks[0]?.owner ?? "", 1n);
  assert.deepEqual(await states(store, "over"), ["c holds"]);
});

test("a minimum hold of the next one begins at its grant", async (t) => {
  const asks = [asking("kept", "a"), asking("kept", "b", { minHoldMs: 600 }), asking("kept", "c")];
  const { store } = await queueOf(t, asks);
  await store.release("kept", asks[0]?.owner ?? "", 1n);
  await store.release("kept", asks[1]?.owner ?? "", 1n);
  assert.deepEqual(await states(store, "kept"), ["b holds", "c waits"]);
  await pause(700);
  await store.renew(asks.slice(2));
  assert.deepEqual(await states(store, "kept"), ["c holds"]);
});

test("releasing what was lost takes nothing from whoever has it, and nobody is forgotten", async (t) => {
  const short = { ttlMs: 150, pendingTtlMs: 150 };
  const asks = [asking("lost", "a", short), asking("lost", "b"), asking("lost", "c")];
  const { store } = await queueOf(t, asks);
  await pause(250);
  await store.renew(asks.slice(1, 2)); // sees that a's lease is over
  assert.deepEqual(await states(store, "lost"), ["b holds", "c waits"]);
  await store.release("lost", asks[0]?.owner ?? "", 1n);
  assert.deepEqual(await states(store, "lost"), ["b holds", "c waits"]);
});

test("the last one leaves the name as if nobody had ever waited", async (t) => {
  const asks = [asking("last", "a"), asking("last", "b")];
  const { store } = await queueOf(t, asks);
  for (const each of asks) await store.release("last", each.owner, 1n);
  const [row] = await (await server()).query("SELECT queued, token FROM holdfast_names WHERE name = 'last'");
  assert.deepEqual({ ...row }, { queued: 0, token: null });
  const before = await questions();
  assert.equal((await store.request(asking("last", "c"))).state, "held");
  assert.ok((await questions()) - before - 1 <= 2, "one statement, and at times one for bells");
});
