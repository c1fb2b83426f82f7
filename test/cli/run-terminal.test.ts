/** `holdfast run` in a shell with job control, on a terminal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lives, pause, stateOf, until } from "./command-line.ts";
import { HOLDFAST, Terminal } from "./terminal.ts";

const LOOP = "while :; do sleep 0.05; done";

test("in the foreground COMMAND has the terminal, in the same process group, and Ctrl-C reaches it once", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x -c 'trap "echo got INT" INT; tty; ps -o pid=,pgid=,tpgid= -p $$; echo $$; ${LOOP}'`);
  const pid = await terminal.commandPid();
  assert.match(terminal.stdout, /^\/dev\/pts\/\d+\r$/m);
  const [, self, group, foreground] = /^ *(\d+) +(\d+) +(\d+)\r$/m.exec(terminal.stdout) ?? [];
  assert.notEqual(group, self, "in the foreground COMMAND must not lead a group of its own");
  assert.equal(group, foreground);
  for (let times = 1; times <= 3; times++) {
    terminal.control("C");
    await until(() => terminal.stdout.split("got INT\r").length === times + 1, `INT ${times}`);
    await pause(400);
    assert.equal(terminal.stdout.split("got INT\r").length, times + 1, "one Ctrl-C came twice");
  }
  assert(lives(pid), "Ctrl-C belongs to COMMAND: it decides");
  process.kill(pid, "SIGKILL");
  terminal.line("echo code $?");
  await terminal.shows(/^code 137\r$/m);
  await terminal.leave();
});

test("in the foreground a signal for holdfast alone reaches COMMAND and its descendants, and nobody else of the job", async () => {
  const terminal = new Terminal();
  const other = "sh -c 'trap \"echo other got TERM\" TERM; cat; sleep 2; echo other ends'";
  terminal.line(
    `${HOLDFAST} run x -c 'trap "echo got INT; kill -0 $$" INT; sleep 60 & echo $!; echo $PPID $$; wait; wait' | ${other}`,
  );
  const child = await terminal.commandPid();
  const [, holdfastPid] = await terminal.shows(/^(\d+) (\d+)\r$/m);
  process.kill(Number(holdfastPid), "SIGINT");
  await terminal.shows(/^got INT\r$/m);
  process.kill(Number(holdfastPid), "SIGTERM");
  await terminal.shows(/^other ends\r$/m);
  assert(!lives(child), "a descendant survived");
  assert.doesNotMatch(terminal.stdout, /^other got TERM\r$/m);
  await terminal.leave();
});

test("--foreground: Ctrl-Z stops COMMAND and holdfast; continued in time, both go on", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x --ttl 20s -c 'echo $$; ${LOOP}'`);
  const pid = await terminal.commandPid();
  terminal.control("Z");
  await until(() => stateOf(pid) === "T", "COMMAND is stopped");
  await terminal.shows(/Stopped/);
  terminal.line("fg");
  await until(() => stateOf(pid) !== "T", "COMMAND goes on");
  await pause(500);
  assert(lives(pid));
  terminal.control("C");
  await until(() => !lives(pid), "COMMAND is gone");
  await terminal.leave();
});

test("--foreground: after Ctrl-Z past the lease nothing is left to continue, and holdfast says so", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x --ttl 2s -k 500ms -c 'echo $$; sleep 60 & echo $!; ${LOOP}'`);
  const [, command, child] = await terminal.shows(/^(\d+)\r\n(\d+)\r$/m);
  const stoppedAt = performance.now();
  terminal.control("Z");
  await until(() => !lives(Number(command)) && !lives(Number(child)), "COMMAND and its child are killed while stopped");
  assert(performance.now() - stoppedAt < 2_500, "it outlived the lease");
  terminal.line("fg");
  await terminal.shows(/holdfast: lock "x" was lost: [^\n]*COMMAND was stopped/);
  terminal.line("echo code $?");
  await terminal.shows(/^code 70\r$/m);
  await terminal.leave();
});

test("--foreground: a COMMAND that goes on in spite of Ctrl-Z keeps its lock", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x --ttl 2s -c 'trap "" TSTP; echo $$; sleep 5; echo done; exit 6'`);
  await terminal.commandPid();
  terminal.control("Z");
  await terminal.shows(/done\r\n/);
  terminal.line("echo code $?");
  await terminal.shows(/^code 6\r$/m);
  await terminal.leave();
});

test("in a group of its own: Ctrl-Z stops the group too, and it goes on when the lease is confirmed", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x --ttl 20s -c 'echo $$; sleep 60 & echo $!; wait' </dev/null`);
  const [, command, child] = await terminal.shows(/^(\d+)\r\n(\d+)\r$/m);
  terminal.control("Z");
  await until(() => stateOf(Number(command)) === "T" && stateOf(Number(child)) === "T", "the group is stopped");
  await terminal.shows(/Stopped/);
  terminal.line("fg");
  await until(() => stateOf(Number(command)) === "S" && stateOf(Number(child)) === "S", "the group goes on");
  terminal.control("C");
  await until(() => !lives(Number(command)) && !lives(Number(child)), "Ctrl-C ended the group");
  terminal.line("echo code $?");
  await terminal.shows(/^code 130\r$/m);
  await terminal.leave();
});

test("in a group of its own: Ctrl-Z past the lease kills the stopped group", async () => {
  const terminal = new Terminal();
  terminal.line(`${HOLDFAST} run x --ttl 2s -k 500ms -c 'echo $$; ${LOOP}' </dev/null`);
  const pid = await terminal.commandPid();
  terminal.control("Z");
  await until(() => !lives(pid), "the group is killed", 4_000);
  terminal.line("fg");
  await terminal.shows(/holdfast: lock "x" was lost/);
  terminal.line("echo code $?");
  await terminal.shows(/^code 70\r$/m);
  await terminal.leave();
});
