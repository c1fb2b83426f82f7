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
  readonly file: string;
  readonly passed: number;
  /** Names. */
  readonly failures: readonly string[];
}

/** What a file's own counts are called in the report; the last line has those of all. */
const COUNTS = /^ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm;

/** Runs one file and prints its report once it has ended; nothing passes by being skipped. */
async function runFile(file: string): Promise<Outcome> {
  let passed = 0;
  const failures: string[] = [];
  // One run for each file: older versions of Node tell the file in which a test is written, not the one that was run.
  const stream = run({ files: [file], timeout: LONGEST_FILE_MS });
  stream.on("test:pass", ({ details, name, skip, todo }) => {
    if (details.type === "suite") return;
    if (skip === undefined && todo === undefined) passed++;
    else failures.push(`${name} (skipped)`);
  });
  stream.on("test:fail", ({ name }) => void failures.push(name));
  let report = "";
  for await (const text of stream.compose(new spec())) report += String(text);
  process.stdout.write(report.replaceAll(COUNTS, ""));
  return { file, passed, failures };
}

async function runFiles(paths: readonly string[], concurrency: number): Promise<Outcome[]> {
  const ended: Outcome[] = [];
  const waiting = [...paths];
  const work = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const from = performance.now();
      ended.push(await runFile(file));
      const seconds = Math.ceil((performance.now() - from) / 1_000);
      console.log(`[${ended.length} of ${paths.length}] ${file}: ${seconds} s\n`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return ended;
}

const outcomes = new Map((await runFiles(files, CONCURRENCY)).map((outcome) => [outcome.file, outcome]));
const suspects = [...outcomes.values()].filter(({ failures }) => failures.length > 0).map(({ file }) => file);
if (suspects.length > 0 && suspects.length <= MOST_SECOND_TRIES) {
  // Two files at once on a small machine can starve each other: what failed is tried once more, alone, and named.
  console.log(`${suspects.length} files failed and run once more, alone\n`);
  for (const outcome of await runFiles(suspects, 1)) {
    if (outcome.failures.length === 0) console.log(`passed at the second try: ${outcome.file}`);
    outcomes.set(outcome.file, outcome);
  }
}

let passed = 0;
let failed = 0;
for (const outcome of outcomes.values()) {
  passed += outcome.passed;
  failed += outcome.failures.length;
  for (const name of outcome.failures) console.log(`failed: ${outcome.file}: ${name}`);
}
if (files.length === 0) console.log("no test file matches");
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
process.stdout.write(`${passed} passed, ${failed} failed\n`);
