/** Mistakes on the command line, and the lines that correct them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseArguments } from "../../src/cli/arguments.ts";
import { commandNamed, COMMANDS, optionsOf } from "../../src/cli/commands.ts";
import { describeMs, parseDuration } from "../../src/cli/duration.ts";
import { EXIT, exitCodeOf, Failure } from "../../src/cli/exit-codes.ts";
import { nearest } from "../../src/cli/nearest.ts";
import { readRunOptions, type RunOptions } from "../../src/cli/run-options.ts";
import { printable, shellQuote } from "../../src/cli/shell-words.ts";
import { holdfast } from "./command-line.ts";

function options(words: readonly string[], terminal = false): RunOptions {
  const command = commandNamed("run") ?? assert.fail();
  return readRunOptions(parseArguments(command, words), terminal);
}

function refuses(words: readonly string[], message: string): void {
  assert.throws(
    () => options(words),
    (error: unknown) => {
      assert(error instanceof Failure);
      assert.equal(error.message, message);
      assert.equal(error.exitCode, EXIT.usage);
      return true;
    },
  );
}

test("the defaults of the design", () => {
  assert.deepEqual(options(["nightly", "--", "cmd", "-n", "--", "x"]), {
    name: "nightly",
    command: ["cmd", "-n", "--", "x"],
    shared: false,
    permits: undefined,
    also: [],
    waitMs: undefined,
    busyCode: 75,
    ttlMs: 30_000,
    atLeastMs: 0,
    maxHoldMs: undefined,
    killAfterMs: 5_000,
    foreground: false,
    quietWhenBusy: false,
    quiet: false,
    verbose: false,
  });
});

test("every option, long and short, before and after NAME", () => {
  const long = options(["--wait", "5s", "x", "--busy-code=3", "--ttl=1m", "--at-least", "2h", "--shared", "--", "c"]);
  assert.equal(long.waitMs, 5_000);
  assert.equal(long.busyCode, 3);
  assert.equal(long.ttlMs, 60_000);
  assert.equal(long.atLeastMs, 7_200_000);
  assert.equal(long.shared, true);
  const short = options([
    "-sqv",
    "x",
    "-w500ms",
    "-E",
    "0",
    "-k",
    "1s",
    "--max-hold",
    "10m",
    "--foreground",
    "--",
    "c",
  ]);
  assert.equal(short.shared && short.quiet && short.verbose && short.foreground, true);
  assert.equal(short.waitMs, 500);
  assert.equal(short.busyCode, 0);
  assert.equal(short.killAfterMs, 1_000);
  assert.equal(short.maxHoldMs, 600_000);
  assert.equal(options(["x", "-n", "--", "c"]).waitMs, 0);
  assert.deepEqual(options(["x", "-c", "a | b"]).command, ["/bin/sh", "-c", "a | b"]);
  assert.equal(options(["x", "--", "c"], true).foreground, true, "a terminal on standard input means --foreground");
});

test("--once TIME is -n --at-least TIME -E 0, and says nothing when busy", () => {
  const once = options(["x", "--once", "10m", "--", "c"]);
  assert.equal(once.waitMs, 0);
  assert.equal(once.atLeastMs, 600_000);
  assert.equal(once.busyCode, 0);
  assert.equal(once.quietWhenBusy, true);
  assert.equal(options(["x", "--once", "10m", "-E", "9", "--", "c"]).busyCode, 9);
});

test("-k is at most half of --ttl, and by default no more than that", () => {
  assert.equal(options(["x", "--ttl", "4s", "--", "c"]).killAfterMs, 2_000);
  assert.equal(options(["x", "--ttl", "4s", "-k", "2s", "--", "c"]).killAfterMs, 2_000);
  refuses(
    ["x", "--ttl", "4s", "-k", "3s", "--", "c"],
    "--kill-after is at most half of --ttl (2000ms): the other half is for renewing the lease",
  );
});

test("-- is mandatory; the error prints the corrected line", () => {
  refuses(["x", "make", "-j", "4"], "put -- before COMMAND: holdfast run x -- make -j 4");
  refuses(["x", "-n", "sh", "-c", "it's"], "put -- before COMMAND: holdfast run x -n -- sh -c 'it'\\''s'");
  refuses(["x", "a", "--", "b"], "put -- before COMMAND: holdfast run x -- a -- b");
  refuses(["x"], "COMMAND is missing: holdfast run x -- COMMAND");
  refuses(["x", "-n", "--"], "COMMAND is missing: holdfast run x -n -- COMMAND");
  refuses(["--", "true"], "NAME is missing: holdfast run NAME -- true");
});

test("TIME has a unit; the error prints the corrected line", () => {
  refuses(["x", "--ttl", "30", "--", "c"], "--ttl 30 has no unit: holdfast run x --ttl 30s -- c");
  refuses(["x", "-w5", "--", "c"], "--wait 5 has no unit: holdfast run x -w5s -- c");
  refuses(["x", "--wait=5", "--", "c"], "--wait 5 has no unit: holdfast run x --wait=5s -- c");
  refuses(["x", "--once", "1d", "--", "c"], "--once 1d has an unknown unit: holdfast run x --once 24h -- c");
  refuses(["x", "-w", "soon", "--", "c"], '--wait "soon" is not a time such as 500ms, 30s, 10m or 1h');
  assert.equal(options(["x", "-w", "0", "--", "c"]).waitMs, 0);
});

test("what excludes each other, what is out of range, what is unknown", () => {
  refuses(["x", "-n", "-w", "1s", "--", "c"], "--no-wait and --wait exclude each other");
  refuses(["x", "--once", "1m", "-w", "1s", "--", "c"], "--once does not wait: leave out --wait");
  refuses(["x", "--once", "1m", "--at-least", "1s", "--", "c"], "--once TIME stands for --at-least TIME too");
  refuses(["x", "-c", "a", "--", "c"], "takes either -c 'SHELL LINE' or -- COMMAND, not both");
  refuses(["x", "-E", "256", "--", "c"], "--busy-code is an exit code from 0 to 255");
  refuses(["x", "--ttl", "50ms", "--", "c"], "--ttl goes from 100ms to 24h");
  refuses(["x", "--max-hold", "0", "--", "c"], "--max-hold must be more than 0");
  refuses(["x", "--tll", "5s", "--", "c"], "there is no option --tll: holdfast run x --ttl 5s -- c");
  refuses(["x", "-z", "--", "c"], "there is no option -z; holdfast run --help lists them");
  refuses(["x", "--shared=yes", "--", "c"], "--shared takes no value: holdfast run x --shared -- c");
  refuses(["x", "--wait", "--", "c"], "--wait needs TIME");
  refuses(["", "--", "c"], "a lock name must not be empty");
});

test("a corrected line shows no secret", () => {
  refuses(
    ["x", "--url", "redis://me:secret@host/", "make"],
    "put -- before COMMAND: holdfast run x --url 'redis://***@host/' -- make",
  );
});

test("an unknown command is answered with a known one", async () => {
  const { code, stderr } = await holdfast(["rum", "x", "--", "true"]).finished;
  assert.equal(code, 64);
  assert.equal(stderr, "holdfast: there is no command rum: holdfast run x -- true\n");
  assert.match((await holdfast(["nightly", "--", "true"]).finished).stderr, /: holdfast run nightly -- true\n$/);
});

test("times", () => {
  assert.deepEqual(parseDuration("1.5m"), { ms: 90_000 });
  assert.deepEqual(parseDuration("1h"), { ms: 3_600_000 });
  assert.deepEqual(parseDuration("0"), { ms: 0 });
  assert.deepEqual(parseDuration("0s"), { ms: 0 });
  assert.deepEqual(parseDuration("7 days"), { problem: '"7 days" is not a time such as 500ms, 30s, 10m or 1h' });
  assert.deepEqual(parseDuration("10min"), { problem: "10min has an unknown unit", fixed: "10m" });
  assert.deepEqual(parseDuration("5S"), { problem: "5S has an unknown unit", fixed: "5s" });
  assert.deepEqual(parseDuration("9999999999999h"), { problem: "9999999999999h is too long" });
  assert.equal(describeMs(300), "300 ms");
  assert.equal(describeMs(90_000), "90 s");
  assert.equal(describeMs(600_000), "10 min");
});

test("words for a shell, and names for a terminal", () => {
  assert.equal(shellQuote("a b"), "'a b'");
  assert.equal(shellQuote(""), "''");
  assert.equal(printable("a\x1b[2Jb\n\u202ec é"), "a\\x1b[2Jb\\x0a\\u{202e}c é");
  assert.equal(nearest("--no-wiat", ["--no-wait", "--wait"]), "--no-wait");
  assert.equal(nearest("--zebra", ["--no-wait", "--wait"]), undefined);
});

test("every code of the library's errors has an exit code", () => {
  for (const [code, expected] of [
    ["LOCK_TIMEOUT", 75],
    ["LOCK_LOST", 70],
    ["LOCK_STOLEN", 70],
    ["ENGINE_UNAVAILABLE", 69],
    ["CONFIG", 78],
    ["NOT_SUPPORTED", 64],
  ] as const) {
    assert.equal(exitCodeOf(Object.assign(new Error("x"), { code })), expected);
  }
  assert.equal(exitCodeOf(new Error("a defect")), 1);
});

test("--help lists every option, --version tells the version", async () => {
  for (const command of COMMANDS) {
    const { stdout, code } = await holdfast([command.name, "--help"]).finished;
    assert.equal(code, 0);
    for (const option of optionsOf(command))
      assert(stdout.includes(`--${option.long}`), `${command.name} ${option.long}`);
  }
  assert.match((await holdfast(["--version"]).finished).stdout, /^holdfast \d+\.\d+\.\d+\n$/);
  const bare = await holdfast([]).finished;
  assert.equal(bare.code, 64);
  assert.match(bare.stdout, /holdfast run NAME/);
});

test("a Node that is too old: exit 78, and which one is needed", async () => {
  const older = 'Object.defineProperty(process,"versions",{value:{...process.versions,node:"22.12.0"}})';
  const given = process.env["NODE_OPTIONS"] ?? "";
  const env = { NODE_OPTIONS: `${given} --import=data:text/javascript,${encodeURIComponent(older)}` };
  const { code, stderr } = await holdfast(["ls"], { env }).finished;
  assert.equal(code, 78);
  assert.match(stderr, /^holdfast: needs Node 22\.13 or later, this is 22\.12\.0 \(/);
});
