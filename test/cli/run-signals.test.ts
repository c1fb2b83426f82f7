/** Signals that come to `holdfast run`, without a terminal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { holdfast, lives, pause, until } from "./command-line.ts";

const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"] as const;

for (const signal of FORWARDED) {
  test(`${signal} is passed on to COMMAND`, async () => {
    const name = signal.slice(3);
    const run = holdfast([
      "run",
      "x",
      "-c",
      `trap 'echo got ${name}; exit 9' ${name}; echo $$; while :; do sleep 0.05; done`,
    ]);
    await run.commandPid();
    run.child.kill(signal);
    const { code, stdout, stderr } = await run.finished;
    assert.match(stdout, new RegExp(`got ${name}\n`));
    assert.equal(code, 9);
    assert.doesNotMatch(stderr, /holdfast/);
  });
}

test("incident 37: SIGINT is passed on, standard input is COMMAND's, the exit code is COMMAND's", async () => {
  const script =
    "process.on('SIGINT', () => process.exit(42)); process.stdin.on('end', () => console.log('ready')).pipe(process.stdout); setInterval(() => {}, 1000)";
  const run = holdfast(["run", "x", "--", process.execPath, "-e", script], { input: "from standard input\n" });
  await run.shows(/^from standard input\nready\n$/);
  run.child.kill("SIGINT");
  const { code, stderr } = await run.finished;
  assert.equal(code, 42);
  assert.equal(stderr, "");
});

test("incident 36: a signal reaches the whole group, not only the shell that COMMAND is", async () => {
  const run = holdfast(["run", "x", "-c", "sleep 60 & echo $!; wait; echo never"]);
  const child = await run.commandPid();
  run.child.kill("SIGTERM");
  const { code } = await run.finished;
  assert.equal(code, 143);
  assert(!lives(child), "the child of the shell survived");
});

test("incident 36: when the shell is killed, its children do not go on without the lock", async () => {
  const run = holdfast(["run", "x", "-c", "sleep 60 & echo $! $$; wait"]);
  const [, child, shell] = await run.shows(/^(\d+) (\d+)$/m);
  process.kill(Number(shell), "SIGKILL");
  const { code } = await run.finished;
  assert.equal(code, 137);
  assert(!lives(Number(child)), "the child of the shell survived");
});

test("after a forwarded TERM the rest of the group that ignores it is killed", async () => {
  const run = holdfast([
    "run",
    "x",
    "-k",
    "500ms",
    "-c",
    "(trap '' TERM; sleep 60 & echo $!; wait; sleep 60) & trap 'exit 0' TERM; wait",
  ]);
  const child = await run.commandPid();
  run.child.kill("SIGTERM");
  assert.equal((await run.finished).code, 0);
  assert(!lives(child), "the rest of the group survived");
});

test("what COMMAND leaves running after an orderly end is left alone", async () => {
  const run = holdfast(["run", "x", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]);
  const child = await run.commandPid();
  assert.equal((await run.finished).code, 0);
  await pause(300);
  assert(lives(child), "the daemon was killed");
  process.kill(child, "SIGKILL");
});

test("a second INT kills", async () => {
  const run = holdfast(["run", "x", "-c", "trap 'echo INT' INT; echo $$; while :; do sleep 0.05; done"]);
  const pid = await run.commandPid();
  run.child.kill("SIGINT");
  await run.shows(/^INT$/m);
  assert(lives(pid));
  run.child.kill("SIGINT");
  assert.equal((await run.finished).code, 137);
  await until(() => !lives(pid), "COMMAND is gone");
});

test("a COMMAND that ignores TERM goes on, and so does its lock", async () => {
  const run = holdfast(["run", "x", "-c", "trap '' TERM; echo $$; sleep 1; echo done; exit 4"]);
  await run.commandPid();
  run.child.kill("SIGTERM");
  const { code, stdout } = await run.finished;
  assert.match(stdout, /done/);
  assert.equal(code, 4);
});

test("--kill-after: a COMMAND that ignores TERM is killed", async () => {
  const run = holdfast([
    "run",
    "x",
    "--max-hold",
    "500ms",
    "-k",
    "700ms",
    "-c",
    "trap '' TERM; echo $$; sleep 60 & wait; wait",
  ]);
  const pid = await run.commandPid();
  const started = performance.now();
  assert.equal((await run.finished).code, 124);
  assert(!lives(pid));
  assert(performance.now() - started > 1_000, "it had 0.5 s to work and 0.7 s to stop");
});

test("COMMAND gets standard input, output and error as they are", async () => {
  const { stdout, stderr, code } = await holdfast(["run", "x", "-c", "cat; echo problem >&2"], { input: "a\0b\n" })
    .finished;
  assert.equal(stdout, "a\0b\n");
  assert.equal(stderr, "problem\n");
  assert.equal(code, 0);
});

test("COMMAND leads a process group of its own", async () => {
  const script =
    "const s = require('fs').readFileSync('/proc/self/stat', 'utf8'); console.log(process.pid, s.slice(s.lastIndexOf(')') + 2).split(' ')[2])";
  const { stdout } = await holdfast(["run", "x", "--", process.execPath, "-e", script]).finished;
  const [pid, group] = stdout.trim().split(" ");
  assert.equal(group, pid);
});
