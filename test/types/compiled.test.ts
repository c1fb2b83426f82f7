/** Compiles the programs of this folder: what they must be able to write, and (`@ts-expect-error`) what must not compile. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

void test("the types of the public interface", () => {
  const root = join(import.meta.dirname, "../..");
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const outcome = spawnSync(process.execPath, [compiler, "-p", join(root, "test/types/tsconfig.json")], {
    cwd: root,
    encoding: "utf8",
  });
  assert.equal(outcome.status, 0, outcome.stdout + outcome.stderr);
});
