/** Every example of the documentation compiles, and runs to its end. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { startMariadb, type MariadbServer } from "../../servers/mariadb.ts";
import { startPostgres, type PostgresServer } from "../../servers/postgres.ts";
import { startRedis, type RedisServer } from "../../servers/redis.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";
import { allExamples, asProgram, needsUsing, ROOT, type Example } from "./examples.ts";

const execute = promisify(execFile);
/** An example that takes longer hangs. */
const LONGEST_RUN_MS = 60_000;
const HAS_USING = Number(process.versions.node.split(".")[0]) >= 24;

const examples = allExamples();
mkdirSync(join(ROOT, ".examples"), { recursive: true });
const directory = mkdtempSync(join(ROOT, ".examples", "run-"));
const fileOf = ({ where, language }: Example): string =>
  join(directory, `${where.replaceAll(/[^a-z0-9]+/gi, "-")}.${language}`);
/** Stands for the installed command. */
const COMMAND = `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, "src/cli/main.ts")}' "$@"\n`;

let stops: (() => Promise<void>)[] = [];
let servers: Record<string, string> = {};

/** What examples write for the servers of their readers. */
function addresses(redis: RedisServer, mariadb: MariadbServer, postgres: PostgresServer, zookeeper: ZooKeeperServer) {
  return {
    "redis://localhost:6379": redis.url,
    "mysql://user:secret@localhost/app": mariadb.url,
    "postgres://user:secret@localhost/app": postgres.url,
    "localhost:2181": zookeeper.address,
  };
}

before(async () => {
  const started = await Promise.all([startRedis(), startMariadb(), startPostgres(), startZooKeeper()]);
  stops = started.map((server) => () => server.stop());
  servers = addresses(...started);
  const quorum = await Promise.all([startRedis(), startRedis(), startRedis()]);
  stops.push(...quorum.map((server) => () => server.stop()));
  quorum.forEach(({ url }, index) => {
    // New servers, and nobody can hold a lock of theirs.
    servers[`redis://${"abc"[index]}:6379`] = index === 2 ? `${url}?bootstrap=true` : url;
  });
  for (const example of examples) {
    const text = example.language === "ts" ? asProgram(example.code, servers) : example.code;
    writeFileSync(fileOf(example), text, { mode: 0o700 });
  }
  writeFileSync(join(directory, "holdfast"), COMMAND, { mode: 0o700 });
});

after(async () => {
  await Promise.all(stops.map((stop) => stop()));
  rmSync(directory, { recursive: true, force: true });
});

test("there are examples", () => {
  assert.ok(examples.length > 0);
});

test("every example compiles, strictly", () => {
  const compiled = examples.filter((each) => each.language === "ts" && each.treatment !== "text only");
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, rewriteRelativeImportExtensions: false },
    files: compiled.map(fileOf),
    include: [],
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  const { status, stdout } = spawnSync(compiler, ["-p", join(directory, "tsconfig.json")], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

void describe("every example runs to its end", { concurrency: 2 }, () => {
  for (const example of examples) {
    void test(example.where, { timeout: 2 * LONGEST_RUN_MS }, async (context) => {
      if (example.treatment !== "run") {
        context.diagnostic(`${example.where} is not run (${example.treatment}): ${example.reason}`);
        return;
      }
      if (needsUsing(example.code) && !HAS_USING) {
        context.diagnostic(`${example.where} is not run: Node ${process.version} has no \`using\`; it was compiled`);
        return;
      }
      const cwd = mkdtempSync(join(directory, "cwd-"));
      const file = fileOf(example);
      const [command, args] = example.language === "ts" ? [process.execPath, [file]] : [file, []];
      const env = { ...process.env, PATH: `${directory}:${process.env["PATH"]}`, XDG_STATE_HOME: cwd };
      const run = execute(command, args, { cwd, env, timeout: LONGEST_RUN_MS, killSignal: "SIGKILL" });
      const outcome = await run.catch((error: Error & { stderr?: string; stdout?: string }) => error);
      const failed = outcome instanceof Error;
      assert.ok(!failed, failed ? `${outcome.message}\n${outcome.stdout ?? ""}${outcome.stderr ?? ""}` : "");
    });
  }
});
