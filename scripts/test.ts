/**
 * Runs the tests and closes with one plain line: `N passed, N failed`.
 *
 *   npm test                        everything
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

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runtime: { type: "string" }, list: { type: "boolean", default: false } },
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
  const flags = Number(values.runtime.split(".")[0]) < 23 ? ["--experimental-strip-types", "--no-warnings"] : [];
  const outcome = spawnSync(installedRuntime(values.runtime), [...flags, "scripts/test.ts", ...positionals], {
    stdio: "inherit",
    env: { ...process.env, ...(flags.length > 0 && { NODE_OPTIONS: flags.join(" ") }) },
  });
  process.exit(outcome.status ?? 1);
}

const files = globSync("test/**/*.test.ts")
  .filter((file) => positionals.length === 0 || positionals.some((word) => file.includes(word)))
  .sort();
if (values.list) console.log(files.join("\n"));
console.log(`Node ${process.version}, ${files.length} test files`);

let passed = 0;
let failed = 0;
const failures: string[] = [];
// One file at a time: many of them start servers and measure time.
const stream = run({ files, concurrency: false, timeout: 600_000 });
stream.on("test:pass", (event) => {
  if (event.details.type === "suite") return;
  if (event.skip !== undefined || event.todo !== undefined) {
    // Nothing passes by being skipped.
    failed++;
    failures.push(`${event.file ?? ""}: ${event.name} (skipped)`);
  } else {
    passed++;
  }
});
stream.on("test:fail", (event) => {
  failed++;
  failures.push(`${event.file ?? ""}: ${event.name}`);
});
stream.compose(new spec()).pipe(process.stdout);
stream.on("end", () => {
  // After the reporter's own last lines.
  setImmediate(() => {
    for (const failure of failures) console.log(`failed: ${failure}`);
    if (files.length === 0) console.log("no test file matches");
    process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
    process.stdout.write(`${passed} passed, ${failed} failed\n`);
  });
});
