/** docs/faults.md shows what docs/faults.json has: figures of runs, none by hand. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { format, resolveConfig } from "prettier";
import { page } from "./suite/report.ts";
import { isClean, type RunResult } from "./suite/result.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const results = JSON.parse(readFileSync(join(DOCS, "faults.json"), "utf8")) as RunResult[];

void test("the page of the fault suite is rendered from its runs", async () => {
  const path = join(DOCS, "faults.md");
  const rendered = await format(page(results), { ...(await resolveConfig(path)), parser: "markdown" });
  assert.equal(readFileSync(path, "utf8"), rendered);
});

void test("the runs of the page broke nothing", () => {
  assert.deepEqual(
    results.filter((result) => !isClean(result)).map(({ engine, seed }) => `${engine}, seed ${seed}`),
    [],
  );
});
