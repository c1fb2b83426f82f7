/** The shell scripts, under every shell of this machine that may stand as /bin/sh. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { groupSize, lives, pause, Running, until } from "./command-line.ts";

const SHELLS = [
  ["/bin/sh"],
  ["/bin/dash"],
  ["/bin/bash"],
  ["/bin/busybox", "sh"],
  ["/bin/zsh", "--emulate", "sh"],
].filter(([path]) => existsSync(path ?? ""));
const script = (name: string): string => readFileSync(join(import.meta.dirname, "../../src/cli", name), "utf8");

interface Guarded {
  readonly command: Running;
  readonly guard: Running;
}

/** A command in a process group of its own and its guard, under the given shell. */
function guarded(shell: readonly string[], kind: "group" | "tree", line: string, tenths = "10"): Guarded {
  const command = new Running(spawn("/bin/sh", ["-c", line], { detached: true, stdio: ["ignore", "pipe", "inherit"] }));
  const [path = "", ...words] = shell;
  const args = [...words, "-c", script("guard.sh"), "guard", kind, String(command.pid), tenths];
  const guard = new Running(spawn(path, args, { detached: true, stdio: ["pipe", "pipe", "pipe"] }));
  return { command, guard };
}

function input(child: ChildProcess): NonNullable<ChildProcess["stdin"]> {
  return child.stdin ?? assert.fail();
}

const TWO_THAT_IGNORE_TERM = "trap '' TERM; sleep 30 & echo $!; echo $$; wait; wait";

for (const shell of SHELLS) {
  const name = shell.join(" ");

  test(`guard under ${name}: the end of its input ends the group, with KILL where TERM is ignored`, async () => {
    const { command, guard } = guarded(shell, "group", TWO_THAT_IGNORE_TERM, "3");
    const [, child] = await command.shows(/^(\d+)\n\d+\n/);
    input(guard.child).end();
    const { signal } = await command.finished;
    assert.equal(signal, "SIGKILL");
    await until(() => !lives(Number(child)), "the child of COMMAND is gone");
    assert.equal((await guard.finished).stderr, "");
  });

  test(`guard under ${name}: the end of its input ends a tree and nobody else of its group`, async () => {
    const { command, guard } = guarded(shell, "tree", "sleep 30 & echo $!; sh -c 'sleep 30 & echo $!; wait'", "3");
    const [, first, second] = await command.shows(/^(\d+)\n(\d+)\n/);
    input(guard.child).end();
    await command.finished;
    await until(() => !lives(Number(first)) && !lives(Number(second)), "the descendants are gone");
    await guard.finished;
  });

  test(`guard under ${name}: silence ends the group when the countdown is over, a new line starts it again`, async () => {
    const { command, guard } = guarded(shell, "group", "sleep 30");
    const started = performance.now();
    for (let at = 0; at < 5; at++) {
      input(guard.child).write("1.5 0.5\n");
      await pause(300);
    }
    const { signal } = await command.finished;
    const elapsed = performance.now() - started;
    assert.equal(signal, "SIGTERM");
    assert(elapsed > 2_600, `ended after ${elapsed} ms, although the last line gave it 1.5 s from 1.2 s on`);
    assert.equal(guard.child.exitCode, null, "the guard stays until its input ends");
    input(guard.child).end();
    assert.equal((await guard.finished).stderr, "");
  });

  test(`guard under ${name}: silence ends what ignores TERM, and what is stopped`, async () => {
    const { command, guard } = guarded(shell, "group", TWO_THAT_IGNORE_TERM);
    await command.shows(/^\d+\n\d+\n/);
    process.kill(-command.pid, "SIGSTOP");
    input(guard.child).write("0.2 0.4\n");
    assert.equal((await command.finished).signal, "SIGKILL");
    input(guard.child).end();
    await guard.finished;
  });

  test(`guard under ${name}: a countdown leaves no sleep behind`, async () => {
    const { command, guard } = guarded(shell, "group", "sleep 30");
    for (let at = 0; at < 10; at++) input(guard.child).write("20 5\n");
    // 10 lines, 1 countdown: the guard, its countdown and that one's sleep.
    await until(() => groupSize(guard.pid) === 3, "one countdown is left", 10_000);
    process.kill(-guard.pid, "SIGKILL");
    await guard.finished;
    process.kill(-command.pid, "SIGKILL");
    await command.finished;
  });

  test(`launcher under ${name}: becomes COMMAND with the token, and does nothing without one`, async () => {
    const [path = "", ...words] = shell;
    const launch = (): Running =>
      new Running(
        spawn(
          path,
          [
            ...words,
            "-c",
            script("launcher.sh"),
            "holdfast",
            "sh",
            "-c",
            `printf '%s\\n' "$$ $HOLDFAST_TOKEN $HOLDFAST_HELD"`,
          ],
          {
            stdio: ["ignore", "pipe", "pipe", "pipe"],
          },
        ),
      );
    const launched = launch();
    const gate = launched.child.stdio[3];
    assert(gate !== null && gate !== undefined && "write" in gate);
    gate.end('17\n{"a\\nb \\\\ c":"17"}\n');
    const { stdout, code } = await launched.finished;
    assert.equal(stdout, `${launched.pid} 17 {"a\\nb \\\\ c":"17"}\n`);
    assert.equal(code, 0);
    const cancelled = launch();
    const closed = cancelled.child.stdio[3];
    assert(closed !== null && closed !== undefined);
    closed.destroy();
    assert.equal((await cancelled.finished).stdout, "");
  });
}
