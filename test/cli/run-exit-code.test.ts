/** Every row of the exit code table, with real processes. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, holdfast, MAIN } from "./command-line.ts";

async function codeOf(words: readonly string[], env: Record<string, string> = {}): Promise<[number | null, string]> {
  const { code, stderr } = await holdfast(words, { env }).finished;
  return [code, stderr];
}

test("the exit code is COMMAND's own, and nothing is said about it", async () => {
  assert.deepEqual(await codeOf(["run", "x", "--", "true"]), [0, ""]);
  assert.deepEqual(await codeOf(["run", "x", "--", "sh", "-c", "exit 3"]), [3, ""]);
  assert.deepEqual(await codeOf(["run", "x", "-c", "exit 255"]), [255, ""]);
  // A code of COMMAND's that is in our table too stays as it is.
  assert.deepEqual(await codeOf(["run", "x", "--", "sh", "-c", "exit 75"]), [75, ""]);
});

test("128 + n when a signal ended COMMAND, without a line", async () => {
  assert.deepEqual(await codeOf(["run", "x", "-c", "kill -TERM $$"]), [143, ""]);
  assert.deepEqual(await codeOf(["run", "x", "-c", "kill -KILL $$"]), [137, ""]);
  assert.deepEqual(await codeOf(["run", "x", "-c", "kill -USR1 $$"]), [138, ""]);
});

test("64: usage, in one line with the corrected line", async () => {
  assert.deepEqual(await codeOf(["run", "nightly", "/srv/app/nightly", "-v"]), [
    64,
    "holdfast: put -- before COMMAND: holdfast run nightly -- /srv/app/nightly -v\n",
  ]);
});

test("64: NAME is already held by an outer run", async () => {
  const inner = `'${process.execPath}' '${MAIN}' run outer -- echo inner`;
  const { code, stderr, stdout } = await holdfast(["run", "outer", "-c", inner]).finished;
  assert.equal(code, 64);
  assert.match(stderr, /^holdfast: outer is already held by an outer run \(token \d+ in HOLDFAST_HELD\)[^\n]*\n$/);
  assert.equal(stdout, "");
});

test("69: the store cannot be reached", async () => {
  // Nothing listens on port 1 of this machine.
  const [code, stderr] = await codeOf(["run", "x", "--url", "redis://127.0.0.1:1", "--", "echo", "never"]);
  assert.equal(code, 69);
  assert.match(stderr, /^holdfast: [^\n]+\n$/);
});

test("78: bad configuration", async () => {
  const [code, stderr] = await codeOf(["run", "x", "--url", "nosuch:thing", "--", "true"]);
  assert.equal(code, 78);
  assert.match(stderr, /^holdfast: no engine has the scheme nosuch:[^\n]*\n$/);
  assert.equal((await codeOf(["run", "x", "--url-file", "/nonexistent/url", "--", "true"]))[0], 78);
  assert.equal((await codeOf(["run", "x", "--", "true"], { HOLDFAST_HELD: "not JSON" }))[0], 78);
});

test("124: --max-hold reached", async () => {
  const [code, stderr] = await codeOf(["run", "x", "--max-hold", "300ms", "--", "sleep", "30"]);
  assert.equal(code, 124);
  assert.equal(stderr, "holdfast: COMMAND was stopped: --max-hold 300 ms reached\n");
});

test("124: also when COMMAND takes TERM as a reason to end well", async () => {
  const line = "trap 'exit 0' TERM; sleep 30 & wait";
  assert.equal((await codeOf(["run", "x", "--max-hold", "300ms", "-c", line]))[0], 124);
});

test("126: COMMAND cannot be executed", async () => {
  const directory = await folder("executable");
  const file = join(directory.path, "text");
  writeFileSync(file, "text", { mode: 0o644 });
  assert.deepEqual(await codeOf(["run", "x", "--", file]), [
    126,
    `holdfast: cannot execute ${file}: permission denied\n`,
  ]);
  assert.equal((await codeOf(["run", "x", "--", directory.path]))[0], 126);
  await directory.remove();
});

test("127: COMMAND is not found", async () => {
  const [code, stderr] = await codeOf(["run", "x", "--", "no-such-command"]);
  assert.equal(code, 127);
  assert.match(stderr, /^holdfast: no-such-command: not found in PATH[^\n]*\n$/);
});

test("126 or 127 in one line of ours also when only the system can tell", async () => {
  const directory = await folder("executable");
  const file = join(directory.path, "script");
  writeFileSync(file, "#!/no/such/interpreter\n", { mode: 0o755 });
  const [code, stderr] = await codeOf(["run", "x", "--", file]);
  assert.equal(code, 127);
  assert.match(stderr, /^holdfast: [^\n]+\n$/);
  await directory.remove();
});
