/** Waiting, not waiting, and what is said about it. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, type LockManager } from "../../src/index.ts";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { folder, holdfast, pause, until, type Running } from "./command-line.ts";
import { HOLDFAST, Terminal } from "./terminal.ts";

let directory: TemporaryDirectory;
let url: string;
let locks: LockManager;

before(async () => {
  directory = await folder("busy");
  url = `sqlite:${join(directory.path, "locks.db")}`;
  locks = await connect(url);
});

after(async () => {
  await locks.close();
  await directory.remove();
});

function run(...words: readonly string[]): Running {
  return holdfast(["run", ...words], { env: { HOLDFAST_URL: url } });
}

const BUSY = /^holdfast: busy is busy: held by [^ ]+:\d+ since \d{4}-\d\d-\d\dT[\d:]+Z\n$/;

test("75: busy, with one line that says who holds it; -E sets another code; -q is silent", async () => {
  const lock = await locks.acquire("busy");
  const plain = await run("busy", "--no-wait", "--", "echo", "ran").finished;
  assert.equal(plain.code, 75);
  assert.match(plain.stderr, BUSY);
  assert.equal(plain.stdout, "");
  const other = await run("busy", "-n", "-E", "9", "--", "true").finished;
  assert.equal(other.code, 9);
  assert.match(other.stderr, BUSY);
  const quiet = await run("busy", "-nq", "--", "true").finished;
  assert.deepEqual([quiet.code, quiet.stderr], [75, ""]);
  await lock.release();
});

test("--wait TIME waits at most that long", async () => {
  const lock = await locks.acquire("busy");
  const started = performance.now();
  const { code, stderr } = await run("busy", "--wait", "800ms", "--", "true").finished;
  assert.equal(code, 75);
  assert.match(stderr, BUSY);
  assert(performance.now() - started >= 800);
  const waiting = run("busy", "-w", "1m", "-c", "echo ran; exit 3");
  await pause(500);
  await lock.release();
  assert.equal((await waiting.finished).code, 3);
});

test("by default it waits for as long as it takes, and says nothing where nobody looks", async () => {
  const lock = await locks.acquire("busy");
  const waiting = run("busy", "--", "echo", "ran");
  await pause(3_000);
  assert.equal(waiting.child.exitCode, null);
  await lock.release();
  const { code, stdout, stderr } = await waiting.finished;
  assert.deepEqual([code, stdout, stderr], [0, "ran\n", ""]);
});

test("on a terminal a wait of a second is explained", async () => {
  const lock = await locks.acquire("explained");
  const terminal = new Terminal({ HOLDFAST_URL: url });
  terminal.line(`${HOLDFAST} run explained -- echo ran`);
  await terminal.shows(/^holdfast: waiting for explained, held by [^ ]+:\d+ since \d{4}-\d\d-\d\dT[\d:]+Z\r$/m);
  await lock.release();
  await terminal.shows(/^ran\r$/m);
  await terminal.leave();
});

test("--once: silent and 0 when busy, and the name stays taken after the job has ended", async () => {
  const marker = join(directory.path, "marker");
  const first = await run("tick", "--once", "1m", "-c", `echo x >>'${marker}'`).finished;
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  const second = await run("tick", "--once", "1m", "--", "echo", "again").finished;
  assert.deepEqual([second.code, second.stdout, second.stderr], [0, "", ""]);
  const failing = await run("failing tick", "--once", "1m", "--", "false").finished;
  assert.equal(failing.code, 1);
  assert.equal(await locks.tryAcquire("failing tick"), null, "also after a failure");
});

for (const [name, line, code] of [
  ["exit", "exit 0", 0],
  ["failure", "exit 1", 1],
  ["crash", "kill -KILL $$", 137],
] as const) {
  test(`incident 64: a short job's ${name} does not free what stays taken at least for a time`, async () => {
    const started = performance.now();
    const job = run(name, "--at-least", "12s", "-c", `echo ends; ${line}`);
    await job.shows(/^ends$/m);
    const endedAt = performance.now();
    assert.equal((await job.finished).code, code);
    assert(performance.now() - endedAt < 8_000, "holdfast lingered");
    assert.equal(await locks.tryAcquire(name), null);
    const lock = await locks.acquire(name);
    // The grant came after `started`.
    assert(performance.now() - started >= 12_000, "it was free too early");
    await lock.release();
  });
}

test("incident 64: nor does the death of holdfast itself", async () => {
  const holder = run("death", "--at-least", "5s", "-c", "echo $$; sleep 60");
  await holder.commandPid();
  const started = performance.now();
  holder.child.kill("SIGKILL");
  await pause(1_000);
  assert.equal(await locks.tryAcquire("death"), null);
  const lock = await locks.acquire("death");
  assert(performance.now() - started < 20_000);
  await lock.release();
});

test("--shared shares with --shared and with nobody else", async () => {
  const both = join(directory.path, "both");
  const wait = `touch '${both}'-$$; while [ $(ls '${both}'-* | wc -l) -lt 2 ]; do sleep 0.05; done`;
  const readers = [run("shared", "-s", "-c", wait), run("shared", "--shared", "-c", wait)];
  for (const reader of readers) assert.equal((await reader.finished).code, 0, "they did not run together");
  const lock = await locks.acquire("shared", { mode: "shared" });
  assert.equal((await run("shared", "-n", "--", "true").finished).code, 75);
  assert.equal((await run("shared", "-ns", "--", "true").finished).code, 0);
  await lock.release();
});

test("waiters are served in the order in which they came", async () => {
  const order = join(directory.path, "order");
  writeFileSync(order, "");
  const lock = await locks.acquire("order");
  const waiters: Running[] = [];
  for (const at of [1, 2, 3]) {
    waiters.push(run("order", "-c", `echo ${at} >>'${order}'; cat '${order}'`));
    let pending = 0;
    while (pending < at) {
      pending = (await locks.query({ name: "order" })).pending.length;
      await pause(20);
    }
  }
  await lock.release();
  assert.equal((await waiters[2]?.finished)?.stdout, "1\n2\n3\n");
  assert(existsSync(order));
  await until(() => waiters.every(({ child }) => child.exitCode === 0), "all ended");
});
