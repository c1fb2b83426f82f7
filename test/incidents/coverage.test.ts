/** Each public incident has a test with its number, on every engine to which it applies. See docs/incidents.md. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isKnown, kitCases, namedTests, rows, type Proof } from "./table.ts";

const table = rows();
const proofs: readonly Proof[] = [...namedTests(), ...(await kitCases())];

test("the table is whole: 68 rows in order, each with somewhere to apply", () => {
  assert.deepEqual(
    table.map((row) => row.number),
    Array.from({ length: 68 }, (_, index) => index + 1),
  );
  for (const { number, on } of table) {
    assert.ok(on.length > 0, `row ${number} applies nowhere`);
    assert.deepEqual(
      on.filter((each) => !isKnown(each)),
      [],
      `row ${number}`,
    );
  }
});

test("every row has a named test on everything it applies to", (t) => {
  const missing: string[] = [];
  for (const { number, on } of table) {
    for (const each of on) {
      const found = proofs.filter((proof) => proof.number === number && proof.on === each);
      if (found.length === 0) missing.push(`${number} on ${each}`);
      for (const { by } of found) t.diagnostic(`${number} on ${each}: ${by}`);
    }
  }
  assert.deepEqual(missing, [], "no test names these incidents");
});

test("no test names an incident that does not apply to its engine, or does not exist", () => {
  const stray = namedTests().filter(
    ({ number, on }) => !table.some((row) => row.number === number && row.on.includes(on)),
  );
  assert.deepEqual(
    stray.map(({ number, by }) => `${number}: ${by}`),
    [],
  );
});
