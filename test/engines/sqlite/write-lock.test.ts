/** The write lock of the lock file: what it costs, who gets it, and what happens when somebody keeps it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../src/engine/clock.ts";
import { CLAIM_AFTER_MS, RightOfWay } from "../../../src/engines/sqlite/right-of-way.ts";
import { connect, EngineUnavailableError } from "../../../src/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LockFile, tokenOf } from "./stores.ts";
import { monotonicMs, startProcess, temporaryFolder } from "./workers.ts";

/** Another program that has begun to write, and does not end. */
function occupy(t: TestContext, path: string): { free(): void } {
  const database = new DatabaseSync(path);
  database.exec("BEGIN IMMEDIATE");
  let open = true;
  const free = (): void => {
    if (open) database.close();
    open = false;
  };
  t.after(free);
  return { free };
}

/** How many transactions this process has committed since it was last asked. */
function countCommits(t: TestContext): () => number {
  let count = 0;
  // oxlint-disable-next-line typescript/unbound-method -- it is applied to its statement below
  const { run } = StatementSync.prototype;
  t.mock.method(StatementSync.prototype, "run", function (this: StatementSync, ...values: never[]) {
    if (this.sourceSQL.trim() === "COMMIT") count++;
    return Reflect.apply(run, this, values);
  });
  return () => {
    const counted = count;
    count = 0;
    return counted;
  };
}

test("one transaction to lock, one to unlock, and one for many renewals", async (t) => {
  const file = new LockFile(t);
  const { store } = await file.visit();
  const commits = countCommits(t);
  const ask = file.ask();
  const token = tokenOf(await store.request(ask));
  assert.equal(commits(), 1);
  await store.release("x", ask.owner, token);
  assert.equal(commits(), 1);
  const asks = Array.from({ length: 200 }, (_, index) => file.ask({ name: `name ${index}` }));
  await Promise.all(asks.map((each) => store.request(each)));
  commits();
  await store.renew(asks.map(({ name, owner, ttlMs, pendingTtlMs }) => ({ name, owner, ttlMs, pendingTtlMs })));
  assert.equal(commits(), 1);
});

test("requests that are made together share transactions", async (t) => {
  const file = new LockFile(t);
  const { store } = await file.visit();
  const commits = countCommits(t);
  const answers = await Promise.all(
    Array.from({ length: 64 }, (_, index) => store.request(file.ask({ name: `name ${index}` }))),
  );
  assert.ok(answers.every((answer) => answer.state === "held"));
  assert.equal(commits(), 1);
});

test("while another process writes, the event loop turns and the request waits", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const locks = await connect(`sqlite:${path}`);
  const other = occupy(t, path);
  let turns = 0;
  const ticking = setInterval(() => turns++, 10);
  const acquired = locks.acquire("x");
  assert.equal(await Promise.race([acquired.then(() => true), sleep(400).then(() => false)]), false);
  clearInterval(ticking);
  assert.ok(turns >= 10, `the event loop turned ${turns} times in 400 ms`);
  other.free();
  await (await acquired).release();
  await locks.close();
});

test("incident 43: time is read after the wait for the write lock: what ended meanwhile has ended, what is new is whole", async (t) => {
  const file = new LockFile(t);
  const { store } = await file.visit({ clock: systemClock });
  tokenOf(await store.request(file.ask({ ttlMs: 400 })));
  const other = occupy(t, file.path);
  const asking = store.request(file.ask({ wait: false, ttlMs: 5_000 }));
  await sleep(1_200);
  other.free();
  tokenOf(await asking);
  const [entry] = await store.inspect("x");
  assert.ok((entry?.remainingMs ?? 0) > 4_200, `${entry?.remainingMs} ms are left of 5,000`);
});

test("a write lock that is never given back is reported in bounded time, and the process may end", async (t) => {
  const file = new LockFile(t);
  const { store } = await file.visit({ clock: systemClock });
  const other = occupy(t, file.path);
  const fromMs = monotonicMs();
  await assert.rejects(store.request(file.ask()), (error) => {
    assert.ok(error instanceof EngineUnavailableError);
    assert.match(error.message, /has been locked by another process for 5000 ms/);
    return true;
  });
  const tookMs = monotonicMs() - fromMs;
  assert.ok(tookMs >= 4_990 && tookMs < 8_000, `after ${tookMs} ms`);
  other.free();
  tokenOf(await store.request(file.ask()));
});

test("a process that awaits a release is kept alive until it has had its turn", (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const program = `
    const { connect } = await import(${JSON.stringify(join(import.meta.dirname, "../../../src/index.ts"))});
    const { DatabaseSync } = await import("node:sqlite");
    const locks = await connect("sqlite:" + process.argv[1]);
    const lock = await locks.acquire("x");
    const other = new DatabaseSync(process.argv[1]);
    other.exec("BEGIN IMMEDIATE");
    setTimeout(() => other.close(), 300).unref();
    const alive = setInterval(() => {}, 1000);
    setTimeout(() => clearInterval(alive), 50);
    await lock.release();
    console.log("released");
  `;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", program, path], { encoding: "utf8" });
  assert.equal(run.stdout, "released\n", run.stderr);
  assert.equal(run.status, 0);
});

test("busy processes do not starve one another", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const workers = Array.from({ length: 6 }, () => startProcess(t));
  await Promise.all(workers.map((worker) => worker.connect(path)));
  const locks = await connect(`sqlite:${path}`);
  const load = new AbortController();
  const loads = Promise.all(
    workers.map(async (worker, index) => {
      while (!load.signal.aborted) await worker.tell({ verb: "hammer", name: `own ${index}`, count: 100 });
    }),
  );
  let longestMs = 0;
  const untilMs = monotonicMs() + 3_000;
  while (monotonicMs() < untilMs) {
    const fromMs = monotonicMs();
    const lock = await locks.acquire("mine");
    await lock.release();
    longestMs = Math.max(longestMs, monotonicMs() - fromMs);
    await sleep(5);
  }
  load.abort();
  await loads;
  await locks.close();
  // Without turns some wait for seconds; on a busy machine a turn may take a while to come.
  assert.ok(longestMs < 2_000, `one lock and unlock took ${longestMs} ms`);
});

test("right of way: whoever sees the sign lets others go first, but not for long", async (t) => {
  const folder = temporaryFolder(t);
  const clock = new ManualClock();
  const [waiter, other] = [new RightOfWay(clock, folder), new RightOfWay(clock, folder)];
  assert.equal(other.mustYield(), false);
  await clock.advance(CLAIM_AFTER_MS);
  waiter.claim();
  assert.equal(waiter.mustYield(), false);
  await clock.advance(2);
  assert.equal(other.mustYield(), true);
  await clock.advance(10);
  assert.equal(other.mustYield(), true);
  await clock.advance(11);
  assert.equal(other.mustYield(), false);
  await clock.advance(2);
  assert.equal(other.mustYield(), true);
  waiter.served();
  assert.equal(other.mustYield(), false);
});

test("right of way: a sign that a killed process has left is taken down", async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(folder, { recursive: true });
  const sign = join(folder, "waiting");
  writeFileSync(sign, "");
  const clock = new ManualClock();
  const other = new RightOfWay(clock, folder);
  for (let turn = 0; turn < 200 && existsSync(sign); turn++) {
    other.mustYield();
    await clock.advance(10);
  }
  assert.equal(existsSync(sign), false);
  assert.equal(other.mustYield(), false);
});
