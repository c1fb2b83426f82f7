/**
 * Runs the tests and closes with one plain line: `N passed, N failed`.
 *
 *   npm test                        the short run: one deployment of each engine
 *   npm run test:all                everything: Sentinel, Cluster, ensembles, both client libraries …
 *   npm test -- sqlite cli          only files whose path contains one of the words
 *   npm test -- --runtime 22.13.0   with another Node (installed into .runtimes on first use)
 *
 * Node 22 runs TypeScript behind a flag; newer ones need none.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";

/** Most tests wait for servers and leases: two files at a time leave a core idle, more would starve them. */
const CONCURRENCY = 2;
const LONGEST_FILE_MS = 600_000;
const MOST_SECOND_TRIES = 12;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    runtime: { type: "string" },
  },
});

/** Another Node, through the `node` package. Returns the path of its binary. */
function installedRuntime(version: string): string {
  const folder = `.runtimes/${version}`;
  const binary = `${folder}/node_modules/node/bin/node`;
  if (!existsSync(binary)) {
    const install = ["install", "--prefix", folder, "--no-save", "--no-package-lock", `node@${version}`];
    const outcome = spawnSync("npm", install, { stdio: "inherit" });
    if (outcome.status !== 0) process.exit(outcome.status ?? 1);
  }
  return binary;
}

if (values.runtime !== undefined) {
  const flags =
    Number(values.runtime.split(".")[0]) < 23
      ? ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"]
      : [];
  const outcome = spawnSync(installedRuntime(values.runtime), [...flags, "scripts/test.ts", ...positionals], {
    stdio: "inherit",
    env: { ...process.env, ...(flags.length > 0 && { NODE_OPTIONS: flags.join(" ") }) },
  });
  process.exit(outcome.status ?? 1);
}

if (values.all) process.env["HOLDFAST_ALL"] = "1";
const files = globSync("test/**/*.test.ts")
  .filter((file) => values.all || positionals.length > 0 || !file.endsWith("-long.test.ts"))
  .filter((file) => positionals.length === 0 || positionals.some((word) => file.includes(word)))
  .sort();
if (values.list) console.log(files.join("\n"));
console.log(`Node ${process.version}, ${files.length} test files`);

interface Outcome {
  passed: number;
  readonly failures: { readonly file: string; readonly name: string }[];
}

/** Runs `files`; nothing passes by being skipped. */
function runFiles(paths: readonly string[], concurrency: number): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const outcomeOf = (file = ""): Outcome => {
    const outcome = outcomes.get(file) ?? { passed: 0, failures: [] };
    outcomes.set(file, outcome);
    return outcome;
  };
  const stream = run({ files: [...paths], concurrency, timeout: LONGEST_FILE_MS });
  stream.on("test:pass", ({ details, file, name, skip, todo }) => {
    if (details.type === "suite") return;
    const outcome = outcomeOf(file);
    if (skip === undefined && todo === undefined) outcome.passed++;
    else outcome.failures.push({ file: file ?? "", name: `${name} (skipped)` });
  });
  stream.on("test:fail", ({ file, name }) => {
    outcomeOf(file).failures.push({ file: file ?? "", name });
  });
  stream.compose(new spec()).pipe(process.stdout, { end: false });
  // After the reporter's own last lines.
  return new Promise((resolve) => stream.on("end", () => setImmediate(() => resolve(outcomes))));
}

const outcomes = await runFiles(files, CONCURRENCY);
const suspects = [...outcomes].filter(([, { failures }]) => failures.length > 0).map(([file]) => file);
if (suspects.length > 0 && suspects.length <= MOST_SECOND_TRIES && suspects.every((file) => existsSync(file))) {
  // Two files at once on a small machine can starve each other: what failed is tried once more, alone, and named.
  console.log(`\n${suspects.length} files failed and run once more, alone`);
  for (const [file, outcome] of await runFiles(suspects, 1)) {
    if (outcome.failures.length === 0) console.log(`passed at the second try: ${file}`);
    outcomes.set(file, outcome);
  }
}

let passed = 0;
let failed = 0;
for (const outcome of outcomes.values()) {
  passed += outcome.passed;
  failed += outcome.failures.length;
  for (const { file, name } of outcome.failures) console.log(`failed: ${file}: ${name}`);
}
if (files.length === 0) console.log("no test file matches");
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
process.stdout.write(`${passed} passed, ${failed} failed\n`);
