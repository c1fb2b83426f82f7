/** Short commands that stand in line together share a transaction: one commit for many names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createConnection } from "mysql2/promise";
import { nowMs, pause, within } from "../../../src/testing/expect.ts";
import { ask, database, storeOn } from "./database.ts";

const server = database();

async function counter(name: string): Promise<number> {
  return Number((await (await server()).query(`SHOW GLOBAL STATUS LIKE '${name}'`))[0]?.["Value"]);
}

test("80 names over one connection: all are held, with a token each, and few commits", async (t) => {
  const { store } = await storeOn(t, await server(), { connections: 1 });
  const asks = Array.from({ length: 80 }, (_, index) => ask(`shared ${index}`));
  const before = await counter("Com_commit");
  const answers = await Promise.all(asks.map((each) => store.request(each)));
  const commits = (await counter("Com_commit")) - before;
  assert.ok(answers.every((each) => each.state === "held"));
  assert.ok(commits <= 12, `${commits} commits`);
  assert.equal((await store.inspect("shared 79")).length, 1);
  await Promise.all(asks.map((each) => store.release(each.name, each.owner, 1n)));
  for (const each of asks) assert.deepEqual(await store.inspect(each.name), []);
});

test("the same name twice in one transaction: one holds it, the other waits", async (t) => {
  const { store } = await storeOn(t, await server(), { connections: 1 });
  const asks = ["other", "twice", "twice", "another"].map((name) => ask(name));
  const answers = await Promise.all(asks.map((each) => store.request(each)));
  assert.deepEqual(
    answers.map((each) => each.state),
    ["held", "held", "pending", "held"],
  );
});

test("a name that a stranger keeps locked holds up its neighbours for a moment only", async (t) => {
  const { store } = await storeOn(t, await server(), { connections: 1, commandTimeoutMs: 20_000 });
  const stuck = ask("stuck 5");
  await store.request(stuck);
  await store.release(stuck.name, stuck.owner, 1n);
  const dba = await createConnection((await server()).url);
  t.after(() => dba.end());
  await dba.query("START TRANSACTION");
  await dba.query("SELECT * FROM holdfast_names WHERE name = 'stuck 5' FOR UPDATE");
  const from = nowMs();
  const asks = Array.from({ length: 10 }, (_, index) => ask(`stuck ${index}`));
  const asking = asks.map((each) => store.request(each));
  const answers = await within(9_000, "the others", Promise.all(asking.filter((_, index) => index !== 5)));
  t.diagnostic(`${Math.round(nowMs() - from)} ms for the others`);
  assert.ok(answers.every((each) => each.state === "held"));
  await dba.query("ROLLBACK");
  assert.equal((await within(9_000, "the stuck one", asking[5] ?? Promise.reject(new Error("none")))).state, "held");
});

test("a connection that is killed in the middle of it: every request is served once", async (t) => {
  const { store } = await storeOn(t, await server(), { connections: 1 });
  await store.request(ask("before"));
  const sessions = await (
    await server()
  ).query("SELECT id FROM information_schema.processlist WHERE user = 'holdfast'");
  const asks = Array.from({ length: 30 }, (_, index) => ask(`cut ${index}`));
  const asking = asks.map(async (each) => {
    for (;;) {
      const answer = await store.request(each).catch(() => undefined);
      if (answer !== undefined) return answer;
      await pause(20);
    }
  });
  for (const { id } of sessions) await (await server()).query(`KILL ${Number(id)}`).catch(() => {});
  const answers = await within(20_000, "all requests", Promise.all(asking));
  assert.ok(answers.every((each) => each.state === "held"));
  for (const each of asks) assert.equal((await store.inspect(each.name)).length, 1);
});

test("several engines, the same names in opposite orders: no deadlock, no lock wait that ends in vain", async (t) => {
  const stores = await Promise.all(Array.from({ length: 3 }, async () => (await storeOn(t, await server())).store));
  const before = await counter("Innodb_deadlocks");
  let held = 0;
  for (let round = 0; round < 25; round++) {
    await Promise.all(
      stores.map(async (store, at) => {
        const names = Array.from({ length: 12 }, (_, index) => `order ${at % 2 === 0 ? index : 11 - index}`);
        const asks = names.map((name) => ask(name, { wait: false }));
        const answers = await Promise.all(asks.map((each) => store.request(each)));
        held += answers.filter((each) => each.state === "held").length;
        await Promise.all(asks.map((each) => store.release(each.name, each.owner, 1n)));
      }),
    );
  }
  assert.ok(held >= 25 * 12, "each name was held by somebody in each round");
  assert.equal((await counter("Innodb_deadlocks")) - before, 0);
});
