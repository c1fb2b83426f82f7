/** What COMMAND finds in its environment, and where the locks live. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TemporaryDirectory } from "../../servers/exit-cleanup.ts";
import { chooseStore } from "../../src/cli/store.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { commandNamed } from "../../src/cli/commands.ts";
import { keepSecret, redactUrl, withoutSecrets } from "../../src/cli/secrets.ts";
import { childrenOf, folder, holdfast, MAIN } from "./command-line.ts";

let directory: TemporaryDirectory;

before(async () => {
  directory = await folder("environment");
});

after(async () => {
  await directory.remove();
});

const SELF = `'${process.execPath}' '${MAIN}'`;
const SHOW = `"${process.execPath}" -e 'console.log(JSON.stringify(process.env))'`;

test("COMMAND gets HOLDFAST_NAME, HOLDFAST_TOKEN and HOLDFAST_HELD", async () => {
  const name = 'a "b"\n__proto__ é';
  const { stdout } = await holdfast(["run", name, "-c", SHOW]).finished;
  const env = JSON.parse(stdout) as Record<string, string>;
  assert.equal(env["HOLDFAST_NAME"], name);
  assert.match(env["HOLDFAST_TOKEN"] ?? "", /^\d+$/);
  assert.deepEqual(JSON.parse(env["HOLDFAST_HELD"] ?? ""), { [name]: env["HOLDFAST_TOKEN"] });
});

test("HOLDFAST_HELD has the names of outer runs too", async () => {
  const { stdout } = await holdfast(["run", "outer", "-c", `${SELF} run __proto__ -c "$SHOW"`], {
    env: { SHOW: 'echo "$HOLDFAST_HELD"' },
  }).finished;
  const held = JSON.parse(stdout) as Record<string, string>;
  assert.deepEqual(Object.keys(held), ["outer", "__proto__"]);
});

test("COMMAND's environment is ours otherwise, also where the shell could not keep it", async () => {
  const odd = { "spring.port": "8080", "a-b": "x y\nz", "BASH_FUNC_f%%": "() { :; }", EMPTY: "", PLAIN: "p" };
  const { stdout } = await holdfast(
    ["run", "x", "--", process.execPath, "-e", "console.log(JSON.stringify(process.env))"],
    {
      env: odd,
    },
  ).finished;
  const env = JSON.parse(stdout) as Record<string, string>;
  for (const [variable, value] of Object.entries(odd)) assert.equal(env[variable], value, variable);
  const added = Object.keys(env).filter((each) => each.startsWith("HOLDFAST_") || each === "GUARD");
  assert.deepEqual(added.toSorted(), ["HOLDFAST_HELD", "HOLDFAST_NAME", "HOLDFAST_TOKEN", "HOLDFAST_URL"]);
});

test("without a URL the locks are in the user's state directory, for the user alone", async () => {
  const home = join(directory.path, "home");
  const env = { HOME: home, HOLDFAST_URL: undefined };
  assert.equal((await holdfast(["run", "x", "--", "true"], { env }).finished).code, 0);
  const file = join(home, ".local/state/holdfast/locks.db");
  assert(existsSync(file));
  assert.equal(statSync(join(home, ".local/state/holdfast")).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const state = join(directory.path, "state 100%?#");
  const xdg = { ...env, XDG_STATE_HOME: state };
  assert.equal((await holdfast(["run", "x", "--", "true"], { env: xdg }).finished).code, 0);
  assert(existsSync(join(state, "holdfast/locks.db")));
});

test("busy and --verbose lines say that the default store is this user's on this machine only", async () => {
  const state = join(directory.path, "verbose");
  const env = { HOLDFAST_URL: undefined, XDG_STATE_HOME: state };
  const scope = `(locks of this user on this machine only: ${state}/holdfast/locks.db)`;
  const verbose = await holdfast(["run", "x", "-v", "-c", `HOLDFAST_HELD= ${SELF} run x -n -- true`], { env }).finished;
  const [holds = "", busy = "", released = ""] = verbose.stderr.split("\n");
  assert.match(holds, /^holdfast: holds x, token \d+ \(/);
  assert(holds.endsWith(scope), holds);
  assert.match(busy, /^holdfast: x is busy: held by [^ ]+:\d+ since \d{4}-\d\d-\d\dT[\d:]+Z \(/);
  assert(busy.endsWith(scope), busy);
  assert.equal(released, "holdfast: released x");
  assert.equal(verbose.code, 75);
});

test("--url comes before --url-file before HOLDFAST_URL; a relative XDG_STATE_HOME is ignored", () => {
  const file = join(directory.path, "url");
  writeFileSync(file, "memory:file\n");
  const run = commandNamed("run") ?? assert.fail();
  const chosen = (words: readonly string[], env: Record<string, string>): string =>
    chooseStore(parseArguments(run, ["x", ...words]), env).url;
  assert.equal(chosen(["--url", "memory:flag"], { HOLDFAST_URL: "memory:env" }), "memory:flag");
  assert.equal(chosen(["--url-file", file], { HOLDFAST_URL: "memory:env" }), "memory:file");
  assert.equal(chosen([], { HOLDFAST_URL: "memory:env" }), "memory:env");
  assert.match(chosen([], { HOLDFAST_URL: "", XDG_STATE_HOME: "relative" }), /^sqlite:\/.*\/holdfast\/locks\.db$/);
  assert.throws(() => chosen(["--url", "memory:", "--url-file", file], {}), /exclude each other/);
  writeFileSync(file, "\n");
  assert.throws(() => chosen(["--url-file", file], {}), /must hold one URL/);
});

test("secrets are shown nowhere", async () => {
  assert.equal(redactUrl("redis://user:p@ss/w@host:6379/0?x=secret#y"), "redis://***@host:6379/0");
  assert.equal(redactUrl("redlock:redis://u:one@a,redis://u:two@b"), "redlock:***@b");
  assert.equal(redactUrl("sqlite:/a/b.db"), "sqlite:/a/b.db");
  keepSecret("mysql://me:hunter%402@host/db");
  assert.equal(
    withoutSecrets("cannot reach mysql://me:hunter%402@host/db (hunter@2, hunter%402)"),
    "cannot reach mysql://***@host/db (***, ***)",
  );
  const secret = "s3cr3tword";
  for (const words of [["--url", `nosuch://me:${secret}@host/x`], [`--url=mysql://me:${secret}@127.0.0.1:1/x`]]) {
    const { stderr, stdout, code } = await holdfast(["run", "x", "-v", ...words, "--", "true"]).finished;
    assert.notEqual(code, 0);
    assert.doesNotMatch(stderr + stdout, new RegExp(secret));
  }
});

test("a --url with a secret is not to be read in ps while COMMAND runs", async () => {
  const path = join(directory.path, "ps.db");
  mkdirSync(directory.path, { recursive: true });
  // The part before @ is where other engines have their password.
  const run = holdfast([
    "run",
    "x",
    "--url",
    `sqlite:${directory.path}/me:s3cr3tword@ps.db`,
    "-c",
    "echo $$; sleep 60",
  ]);
  const command = await run.commandPid();
  const everybody = [run.pid, ...childrenOf(run.pid).map(({ pid }) => pid)];
  assert.equal(everybody.length, 3);
  for (const pid of everybody) assert.doesNotMatch(readFileSync(`/proc/${pid}/cmdline`, "utf8"), /s3cr3tword/);
  assert(everybody.includes(command));
  run.child.kill("SIGTERM");
  assert.equal((await run.finished).code, 143);
  assert(!existsSync(path));
});
