/** `ls`, `show`, `evict` and `sql`: what they print, to whom. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, type HeldLock, type LockManager } from "../../src/index.ts";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { folder, holdfast, MAIN, pause, start, type Finished } from "./command-line.ts";
import { HOLDFAST, Terminal } from "./terminal.ts";

let directory: TemporaryDirectory;
let url: string;
let locks: LockManager;

before(async () => {
  directory = await folder("listing");
  url = `sqlite:${join(directory.path, "locks.db")}`;
  locks = await connect(url);
});

after(async () => {
  await locks.close();
  await directory.remove();
});

async function ask(...words: readonly string[]): Promise<Finished> {
  return await holdfast(words, { env: { HOLDFAST_URL: url } }).finished;
}

interface Row {
  readonly name: string;
  readonly state: string;
  readonly mode: string;
  readonly token: string | null;
  readonly host: string;
  readonly pid: number;
  readonly since: string;
  readonly leaseEnds: string | null;
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function waitingFor(name: string, count: number): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if ((await locks.query({ name })).pending.length === count) return;
    await pause(10);
  }
  assert.fail(`nobody waits for ${name}`);
}

test("--json: one array, tokens as strings, times in ISO 8601; held ones first, then the queue in order", async () => {
  assert.deepEqual(JSON.parse((await ask("ls", "--json")).stdout), []);
  const held = await locks.acquire("b");
  const readers = [await locks.acquire("a", { mode: "shared" }), await locks.acquire("a", { mode: "shared" })];
  const waiting = [locks.acquire("a"), locks.acquire("a", { mode: "shared" })];
  await waitingFor("a", 2);
  const { stdout, stderr, code } = await ask("ls", "--json");
  assert.deepEqual([stderr, code], ["", 0]);
  const rows = JSON.parse(stdout) as Row[];
  assert.deepEqual(
    rows.map(({ name, state, mode }) => [name, state, mode]),
    [
      ["a", "held", "shared"],
      ["a", "held", "shared"],
      ["a", "pending", "exclusive"],
      ["a", "pending", "shared"],
      ["b", "held", "exclusive"],
    ],
  );
  assert.deepEqual(
    rows.map(({ token }) => token),
    [String(readers[0]?.token), String(readers[1]?.token), null, null, String(held.token)],
  );
  for (const { since, leaseEnds, pid } of rows) {
    assert.match(since, ISO);
    assert.match(leaseEnds ?? "", ISO);
    assert.equal(pid, process.pid);
  }
  const shown = JSON.parse((await ask("show", "b", "--json")).stdout) as Row[];
  assert.deepEqual(
    shown.map(({ name }) => name),
    ["b"],
  );
  await Promise.all([held, ...readers].map((lock) => lock.release()));
  for (const each of waiting) await (await each).release();
});

test("ls lists what begins with PREFIX, as a table without colour or cut-off where nobody looks", async () => {
  const long = `team:${"x".repeat(200)}`;
  const held = await Promise.all([locks.acquire(long), locks.acquire("team:b"), locks.acquire("other")]);
  const { stdout } = await ask("ls", "team:");
  const lines = stdout.split("\n");
  assert.match(lines[0] ?? "", /^NAME +STATE +MODE +TOKEN +WHO +SINCE +LEASE$/);
  assert.match(lines[1] ?? "", /^team:b +held +exclusive +\d+ +[^ ]+:\d+ +\S+Z +[\d.]+ s$/);
  assert(lines[2]?.startsWith(`${long}  held`));
  assert.equal(lines.length, 4);
  assert(!stdout.includes("\x1b"));
  await Promise.all(held.map((lock) => lock.release()));
});

test("on a terminal: a bold header and lines that fit; NO_COLOR keeps it plain", async () => {
  const lock = await locks.acquire(`wide ${"x".repeat(200)}`);
  for (const [env, bold] of [
    [{ TERM: "xterm" }, true],
    [{ TERM: "xterm", NO_COLOR: "1" }, false],
    [{ TERM: "dumb" }, false],
  ] as const) {
    const terminal = new Terminal({ HOLDFAST_URL: url, ...env });
    terminal.line("stty cols 60; bind 'set enable-bracketed-paste off' 2>/dev/null");
    terminal.line(`${HOLDFAST} ls wide`);
    const [line = ""] = await terminal.shows(/^wide x+…\r$/m);
    assert.equal(terminal.stdout.includes("\x1b[1mNAME"), bold);
    assert.equal(line.trim().length, 60);
    await terminal.leave();
  }
  await lock.release();
});

test("a name cannot write to the terminal", async () => {
  const lock = await locks.acquire("evil\x1b]0;title\x07\nforged  held");
  const { stdout } = await ask("ls", "evil");
  assert(stdout.includes("evil\\x1b]0;title\\x07\\x0aforged  held"));
  assert.equal(stdout.split("\n").length, 3);
  await lock.release();
});

test("a reader that has gone is no error", async () => {
  const held: HeldLock[] = [];
  for (let at = 0; at < 300; at++) held.push(await locks.acquire(`many ${"x".repeat(400)} ${at}`));
  const line = `'${process.execPath}' '${MAIN}' ls many --json | head -n 1; echo "codes \${PIPESTATUS[*]}"`;
  const { stdout, stderr } = await start("bash", ["-c", line], { env: { HOLDFAST_URL: url } }).finished;
  assert.deepEqual([stdout, stderr], ["[\ncodes 0 0\n", ""]);
  await Promise.all(held.map((lock) => lock.release()));
});

test("show says that a name is free, and needs one NAME", async () => {
  assert.deepEqual((await ask("show", "nothing")).stdout, "nothing is free\n");
  assert.deepEqual(JSON.parse((await ask("show", "nothing", "--json")).stdout), []);
  const missing = await ask("show");
  assert.deepEqual([missing.code, missing.stderr], [64, "holdfast: NAME is missing: holdfast show NAME\n"]);
  const extra = await ask("show", "a", "b");
  assert.deepEqual([extra.code, extra.stderr], [64, 'holdfast: "b" is one word too many: holdfast show a\n']);
});

test("evict ends the holder with that token and no other", async () => {
  const lock = await locks.acquire("evicted", { ttlMs: 3_000 });
  const wrong = await ask("evict", "evicted", String(lock.token + 1n));
  assert.equal(wrong.code, 1);
  assert.equal(wrong.stderr, `holdfast: nobody holds evicted with token ${lock.token + 1n}\n`);
  assert(lock.isHeld());
  const right = await ask("evict", "evicted", String(lock.token), "--json");
  assert.equal(right.code, 0);
  assert.deepEqual(JSON.parse(right.stdout), [{ name: "evicted", token: String(lock.token) }]);
  await (await locks.acquire("evicted", { waitMs: 5_000 })).release();
  assert.equal((await ask("evict", "evicted")).code, 64);
  assert.equal((await ask("evict", "evicted", "abc")).code, 64);
  assert.equal((await ask("evict", "evicted", "1", "--json")).stdout, "[]\n");
});

test("sql mysql prints the tables and the least privileges", async () => {
  const { stdout, code } = await ask("sql", "mysql");
  assert.equal(code, 0);
  assert.match(stdout, /GRANT SELECT/);
  assert.match(stdout, /CREATE TABLE/);
  assert.equal(stdout, readFileSync(join(import.meta.dirname, "../../src/engines/mysql/schema.sql"), "utf8"));
  assert.equal(
    (await ask("sql", "mariadb")).stderr,
    'holdfast: no tables are needed for "mariadb": holdfast sql mysql\n',
  );
});

test("a store that is not there: one line, 78", async () => {
  const { code, stderr } = await holdfast(["ls"], { env: { HOLDFAST_URL: "sqlite:/nonexistent/locks.db" } }).finished;
  assert.equal(code, 78);
  assert.match(stderr, /^holdfast: [^\n]+\n$/);
});
