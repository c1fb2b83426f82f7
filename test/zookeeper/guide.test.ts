/** The examples of the pages on ZooKeeper, run against a real server; what they print is what their comments say. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { startZooKeeper, type ZooKeeperServer } from "../../servers/zookeeper.ts";

const ROOT = join(import.meta.dirname, "../..");
const run = promisify(execFile);
let server: ZooKeeperServer;

before(async () => {
  server = await startZooKeeper({ settings: { maxSessionTimeout: 60_000 } });
});

after(async () => {
  await server.stop();
});

function blocks(page: string): string[] {
  return [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
}

for (const [page, count] of [
  ["docs/guide/zookeeper-basics.md", 4],
  ["docs/engines/zookeeper.md", 1],
] as const) {
  test(`${page}: its ${count} programs run`, async () => {
    const programs = blocks(page);
    assert.equal(programs.length, count);
    for (const [index, code] of programs.entries()) {
      const file = join(import.meta.dirname, `guide-${process.pid}-${index}.ts`);
      const source = code
        .replaceAll("localhost:2181", server.address)
        .replaceAll('"holdfast"', '"../../src/index.ts"')
        .replaceAll(
          /"holdfast\/(engines\/)?(\w+)"/g,
          (_, engines = "", name) => `"../../src/${engines}${name}/index.ts"`,
        );
      writeFileSync(file, source);
      try {
        const { stdout } = await run(process.execPath, [file]);
        for (const [, expected = ""] of code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)) {
          if (/^(suspended|now)/.test(expected)) continue;
          assert.ok(stdout.includes(expected), `${expected} is not in ${stdout}`);
        }
      } finally {
        rmSync(file);
      }
    }
  });
}
