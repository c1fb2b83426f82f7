/** COMMAND does not outlive holdfast, nor its lease: with real processes, on the embedded engine. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, type LockManager } from "../../src/index.ts";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import {
  childrenOf,
  folder,
  groupSize,
  holdfast,
  lives,
  MAIN,
  pause,
  start,
  until,
  type Running,
} from "./command-line.ts";

const LOOP = "while :; do sleep 0.05; done";

let directory: TemporaryDirectory;
let url: string;
let locks: LockManager;

before(async () => {
  directory = await folder("guard");
  url = `sqlite:${join(directory.path, "locks.db")}`;
  locks = await connect(url);
});

after(async () => {
  await locks.close();
  await directory.remove();
});

function run(words: readonly string[]): Running {
  return holdfast(["run", ...words], { env: { HOLDFAST_URL: url } });
}

/** Two processes of COMMAND's group: a shell and its child. Both ignore TERM when told to. */
function two(ignoring: "" | "trap '' TERM; "): string {
  return `${ignoring}sleep 60 & echo $! $$; while :; do wait; sleep 0.05; done`;
}

async function pids(running: Running): Promise<[number, number]> {
  const [, child, command] = await running.shows(/^(\d+) (\d+)$/m);
  return [Number(child), Number(command)];
}

test("incident 60: holdfast is killed; its command goes with it, and the next one has the lock within a second", async () => {
  const first = run(["killed", "-c", two("")]);
  const [child, command] = await pids(first);
  const token = (await locks.query({ name: "killed" })).held[0]?.token ?? 0n;
  const next = locks.acquire("killed");
  await pause(200);
  const killedAt = performance.now();
  first.child.kill("SIGKILL");
  const lock = await next;
  const elapsed = performance.now() - killedAt;
  assert(!lives(command) && !lives(child), "the next one was let in beside the orphan");
  assert(elapsed < 1_000, `the next one had the lock after ${elapsed} ms`);
  assert(lock.token > token);
  await lock.release();
});

test("incident 60: a command that ignores TERM is killed, and the next one waits until it is gone", async () => {
  const first = run(["stubborn", "-k", "700ms", "-c", two("trap '' TERM; ")]);
  const [child, command] = await pids(first);
  const next = locks.acquire("stubborn");
  first.child.kill("SIGKILL");
  const lock = await next;
  assert(!lives(command) && !lives(child), "the next one was let in beside the orphan");
  await lock.release();
});

test("incident 60: holdfast and its guard are killed; the next one waits for the orphan", async () => {
  const first = run(["both", "-c", `echo $$; sleep 2`]);
  const command = await first.commandPid();
  for (const { pid } of childrenOf(first.pid).filter(({ pid }) => pid !== command)) process.kill(-pid, "SIGKILL");
  first.child.kill("SIGKILL");
  const lock = await locks.acquire("both");
  assert(!lives(command), "the next one was let in beside the orphan");
  await lock.release();
});

test("incident 60: holdfast is stopped past its lease; its command is gone before the lease ends, and it says so", async () => {
  const first = run(["stopped", "--ttl", "3s", "-k", "500ms", "-c", two("trap '' TERM; ")]);
  const [child, command] = await pids(first);
  const next = locks.acquire("stopped");
  await pause(300);
  first.child.kill("SIGSTOP");
  const lock = await next;
  assert(!lives(command) && !lives(child), "the next one was let in beside the orphan");
  first.child.kill("SIGCONT");
  const { code, stderr } = await first.finished;
  assert.equal(code, 70);
  assert.match(stderr, /^holdfast: lock "stopped" was lost: [^\n]*COMMAND was stopped\n$/);
  assert(lock.isHeld(), "the one that woke up took something away");
  await lock.release();
});

test("holdfast and its stopped group: nothing stale is left to continue", async () => {
  const first = run(["both-stopped", "--ttl", "3s", "-k", "500ms", "-c", two("")]);
  const [child, command] = await pids(first);
  first.child.kill("SIGSTOP");
  process.kill(-command, "SIGSTOP");
  await until(() => !lives(command) && !lives(child), "the stopped group was killed");
  first.child.kill("SIGCONT");
  assert.equal((await first.finished).code, 70);
});

for (const [how, act] of [
  ["killed", (holder: Running) => holder.child.kill("SIGKILL")],
  ["stopped past its lease", (holder: Running) => holder.child.kill("SIGSTOP")],
] as const) {
  test(`--foreground: holdfast is ${how}; COMMAND and its descendants go`, async () => {
    const name = `foreground ${how}`;
    const first = run([name, "--foreground", "--ttl", "3s", "-k", "500ms", "-c", two("trap '' TERM; ")]);
    const [child, command] = await pids(first);
    act(first);
    const lock = await locks.acquire(name);
    assert(!lives(command), "the next one was let in beside the orphan");
    await until(() => !lives(child), "its child is gone");
    await lock.release();
    first.child.kill("SIGKILL");
  });
}

test("a lost lock stops the whole group: TERM, then KILL; exit code 70", async () => {
  const first = run(["lost", "-k", "500ms", "--ttl", "3s", "-c", two("trap '' TERM; ")]);
  const [child, command] = await pids(first);
  const [holder] = (await locks.query({ name: "lost" })).held;
  assert(await locks.evict("lost", holder?.token ?? 0n));
  const { code, stderr } = await first.finished;
  assert(!lives(command) && !lives(child));
  assert.equal(code, 70);
  assert.equal(stderr, 'holdfast: lock "lost" was lost: it was evicted by hand; COMMAND was stopped\n');
});

test("a lost lock: COMMAND may clean up after TERM, the exit code is still 70", async () => {
  const first = run(["lost gently", "--ttl", "3s", "-c", `trap 'echo cleaned up; exit 0' TERM; echo $$; ${LOOP}`]);
  await first.commandPid();
  const [holder] = (await locks.query({ name: "lost gently" })).held;
  await locks.evict("lost gently", holder?.token ?? 0n);
  const { code, stdout } = await first.finished;
  assert.match(stdout, /cleaned up/);
  assert.equal(code, 70);
});

test("a guard that is killed is replaced", async () => {
  const first = run(["replaced", "-c", `echo $$; ${LOOP}`]);
  const command = await first.commandPid();
  const guards = (): number[] => childrenOf(first.pid).flatMap(({ pid }) => (pid === command ? [] : pid));
  const [guard = 0] = guards();
  process.kill(guard, "SIGKILL");
  await until(() => guards().some((pid) => pid !== guard), "there is another guard");
  await until(() => groupSize(guard) === 0, "the countdown of the old one is gone", 2_000);
  first.child.kill("SIGKILL");
  await until(() => !lives(command), "COMMAND is gone");
});

test("holdfast is killed while it waits: nothing is left, in the system or in the queue", async () => {
  const lock = await locks.acquire("waiting");
  const waiter = run(["waiting", "--", "true"]);
  let waits = 0;
  for (let tries = 0; waits === 0 && tries < 1_000; tries++) {
    waits = (await locks.query({ name: "waiting" })).pending.length;
    await pause(20);
  }
  assert.equal(waits, 1);
  const left = childrenOf(waiter.pid);
  assert.equal(left.length, 2, "the process that is to become COMMAND, and the guard");
  waiter.child.kill("SIGKILL");
  await until(() => left.every(({ pid }) => !lives(pid)), "its children are gone");
  await lock.release();
  await (await locks.acquire("waiting", { waitMs: 5_000 })).release();
});

test("a signal ends the wait: 128 + n, and the place in the queue is given up", async () => {
  const lock = await locks.acquire("interrupted");
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    const waiter = run(["interrupted", "--", "echo", "never"]);
    await until(() => childrenOf(waiter.pid).length === 2, "it waits");
    await pause(300);
    waiter.child.kill(signal);
    const finished = await waiter.finished;
    assert.equal(finished.code, code);
    assert.equal(finished.stdout + finished.stderr, "");
    assert.equal((await locks.query({ name: "interrupted" })).pending.length, 0);
  }
  await lock.release();
});

test("a full pipe on standard error holds up nothing: the lease is renewed, COMMAND ends, the exit code is its own", async () => {
  const codeFile = join(directory.path, "code");
  // The pipe is filled before holdfast starts, and nobody reads it.
  const command = `'${process.execPath}' '${MAIN}' run full -v --ttl 1s -c 'sleep 3; exit 5'`;
  const writer = `yes | head -c 65536 >&2; ${command}; echo $? >'${codeFile}'`;
  start("/bin/sh", ["-c", `{ ${writer}; } 2>&1 >/dev/null </dev/null | sleep 60`], { env: { HOLDFAST_URL: url } });
  await until(() => existsSync(codeFile) && readFileSync(codeFile, "utf8") !== "", "it ended");
  assert.equal(readFileSync(codeFile, "utf8"), "5\n");
});

test("a COMMAND that is stuck on a full pipe keeps its lock", async () => {
  const stuck = start(
    "/bin/sh",
    ["-c", `'${process.execPath}' '${MAIN}' run stuck --ttl 1s -- yes </dev/null | sleep 60`],
    {
      env: { HOLDFAST_URL: url },
    },
  );
  await until(() => childrenOf(stuck.pid).length === 2, "the pipeline runs");
  for (let tries = 0; tries < 1_000 && (await locks.query({ name: "stuck" })).held.length === 0; tries++)
    await pause(20);
  await pause(2_500);
  assert.equal(await locks.tryAcquire("stuck"), null);
  for (const { pid } of childrenOf(stuck.pid)) process.kill(pid, "SIGTERM");
  await (await locks.acquire("stuck", { waitMs: 10_000 })).release();
});

test("COMMAND's standard error is as blocking as it was", async () => {
  // A pipe of a shell: those that Node makes are sockets. Time for holdfast to do what it does after the start.
  const command = `'${process.execPath}' '${MAIN}' run flags -v -c 'sleep 0.5; cat /proc/self/fdinfo/2'`;
  const { stdout } = await start("bash", ["-c", `${command} 2> >(cat >/dev/null)`]).finished;
  const flags = Number.parseInt(/flags:\s*(\d+)/.exec(stdout)?.[1] ?? "", 8);
  assert.equal(flags & 0o4000, 0, "O_NONBLOCK is set on the pipe that COMMAND writes to");
});

test("nothing is left behind after an orderly end", async () => {
  const ordinary = run(["orderly", "-c", "echo $$; sleep 0.3"]);
  const command = await ordinary.commandPid();
  const children = childrenOf(ordinary.pid).map(({ pid }) => pid);
  assert.equal(children.length, 2);
  assert(children.includes(command));
  assert.equal((await ordinary.finished).code, 0);
  await until(() => children.every((pid) => !lives(pid)), "guard and COMMAND are gone");
});
