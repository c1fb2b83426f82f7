/** A guarded process group keeps the places of its dead supervisor taken: the command of `holdfast run`. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { describeGroup, groupRuns } from "../../../src/engines/sqlite/guarded-group.ts";
import { pidSpace } from "../../../src/engines/sqlite/machine.ts";
import { ConfigError } from "../../../src/index.ts";
import { LockFile, tokenOf } from "./stores.ts";
import { monotonicMs, startProcess, temporaryFolder } from "./workers.ts";

/** Starts `line` as the leader of a process group of its own. The group is killed with the test. */
function startGroup(t: TestContext, line: string): ChildProcess & { readonly stdout: Readable } {
  const child = spawn("sh", ["-c", line], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => killGroup(child.pid));
  return child;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended already.
  }
}

test("while the command of a killed supervisor runs nobody is let in, and at once when it has ended", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const command = startGroup(t, "sleep 60 & echo started; wait");
  await once(command.stdout, "data");
  const [supervisor, waiter] = [startProcess(t), startProcess(t)];
  await supervisor.connect(path, command.pid);
  await waiter.connect(path);
  await supervisor.acquire("x", { ttlMs: 1_000 });
  const granted = waiter.acquire("x");
  await sleep(200);
  await supervisor.kill();
  assert.equal(await waiter.tryAcquire("x"), null);
  // Long after the lease.
  const early = await Promise.race([granted.then(() => true), sleep(2_000).then(() => false)]);
  assert.equal(early, false);
  // The leader alone is not the group.
  process.kill(command.pid ?? 0, "SIGKILL");
  await once(command, "exit");
  assert.equal(await Promise.race([granted.then(() => true), sleep(300).then(() => false)]), false);
  const killedAtMs = monotonicMs();
  killGroup(command.pid);
  const { atMs } = await granted;
  assert.ok(atMs - killedAtMs < 1_000, `granted after ${atMs - killedAtMs} ms`);
});

test("supervisor and command killed together: the next one is in at once", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const command = startGroup(t, "sleep 60");
  const [supervisor, waiter] = [startProcess(t), startProcess(t)];
  await supervisor.connect(path, command.pid);
  await waiter.connect(path);
  await supervisor.acquire("x", { ttlMs: 60_000 });
  const granted = waiter.acquire("x");
  await sleep(200);
  const killedAtMs = monotonicMs();
  killGroup(command.pid);
  supervisor.signal("SIGKILL");
  const { atMs } = await granted;
  assert.ok(atMs - killedAtMs < 1_000, `granted after ${atMs - killedAtMs} ms`);
});

test("a supervisor that releases lets the next one in, whatever still runs", async (t) => {
  const path = join(temporaryFolder(t), "locks.db");
  const command = startGroup(t, "sleep 60");
  const [supervisor, waiter] = [startProcess(t), startProcess(t)];
  await supervisor.connect(path, command.pid);
  await waiter.connect(path);
  await supervisor.acquire("x");
  const granted = waiter.acquire("x");
  await supervisor.release("x");
  await granted;
});

test("a group of nothing but zombies runs no more", async (t) => {
  // `setsid` makes a group of one; nobody reaps it, because its parent has become `sleep`.
  const parent = startGroup(t, "setsid sleep 0.5 & echo $!; exec sleep 60");
  const [output] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(output.toString());
  await sleep(100);
  const group = describeGroup(pid);
  assert.equal(groupRuns(group), true);
  await sleep(1_000);
  assert.doesNotThrow(() => process.kill(-pid, 0), "the zombie has been reaped, this proves nothing");
  assert.equal(groupRuns(group), false);
});

test("a process id that was given away again is another group", (t) => {
  const command = startGroup(t, "sleep 60");
  const group = describeGroup(command.pid ?? 0);
  assert.equal(groupRuns(group), true);
  assert.equal(groupRuns({ ...group, startedAt: "1" }), false);
});

test("a stopped command still counts", async (t) => {
  const command = startGroup(t, "sleep 60");
  const group = describeGroup(command.pid ?? 0);
  process.kill(-group.pid, "SIGSTOP");
  await sleep(50);
  assert.equal(groupRuns(group), true);
});

test("guardedPid has to be a process group", () => {
  for (const pid of [0, 1, -5, 1.5, Number.NaN, 2 ** 30])
    assert.throws(() => describeGroup(pid), ConfigError, String(pid));
});

test("seen from another PID namespace only the lease counts, and it does count", async (t) => {
  const file = new LockFile(t);
  const command = startGroup(t, "sleep 60");
  const group = describeGroup(command.pid ?? 0);
  assert.equal(group.pidSpace, pidSpace());
  const holder = await file.visit({ guarded: { ...group, pidSpace: "pid:[1]" } });
  const other = await file.visit();
  tokenOf(await holder.store.request(file.ask({ ttlMs: 5_000 })));
  assert.equal((await other.store.request(file.ask({ wait: false }))).state, "busy");
  await file.clock.advance(5_002);
  tokenOf(await other.store.request(file.ask({ wait: false })));
});

test("in the same PID namespace a lease that ends does not end the place of a running command", async (t) => {
  const file = new LockFile(t);
  const command = startGroup(t, "sleep 60");
  const holder = await file.visit({ guarded: describeGroup(command.pid ?? 0) });
  const other = await file.visit();
  const held = file.ask({ ttlMs: 5_000 });
  tokenOf(await holder.store.request(held));
  await file.clock.advance(60_000);
  assert.equal((await other.store.request(file.ask({ wait: false }))).state, "busy");
  killGroup(command.pid);
  await once(command, "exit");
  // The shell is gone; what it started may take a moment longer.
  const untilMs = monotonicMs() + 2_000;
  let answer = await other.store.request(file.ask({ wait: false }));
  while (answer.state === "busy" && monotonicMs() < untilMs) {
    await sleep(10);
    answer = await other.store.request(file.ask({ wait: false }));
  }
  tokenOf(answer);
});
