/**
 * The matrix of promises and engines has no hole: every engine of the registry is under test, and every promise, option
 * and part of the interface is asked of each of them, or refused by it. `subjects/NAME.ts` says how an engine is put
 * under test (importing it starts nothing), `NAME.test.ts` runs the kit on it.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { OPTIONS, PROMISES, SURFACE } from "../../src/testing/case.ts";
import { CASES } from "../../src/testing/cases/index.ts";
import { conformanceCases } from "../../src/testing/conformance.ts";
import { HOOKS } from "../../src/testing/subject.ts";
import { ENGINES, subjectsOf } from "./extent.ts";

const HERE = import.meta.dirname;
const FOLDERS = join(HERE, "../../src/engines");

const folders = readdirSync(FOLDERS, { withFileTypes: true }).filter((each) => each.isDirectory());
const inRegistry = folders.map((each) => each.name).filter((name) => ENGINES.includes(name));

test("every engine of the registry has a folder", () => {
  assert.deepEqual(inRegistry.sort(), [...ENGINES].sort());
});

for (const engine of ENGINES) {
  test(`${engine}: is under test`, async () => {
    const subjects = await subjectsOf(engine);
    assert.ok(subjects.length > 0);
    assert.ok(subjects.every((each) => each.traits.engine === engine));
    const program = readFileSync(join(HERE, `${engine}.test.ts`), "utf8");
    assert.match(program, /\bregisterConformance\(/, `${engine}.test.ts does not run the kit`);
    assert.ok(program.includes(`"./subjects/${engine}.ts"`), `${engine}.test.ts does not run its subjects`);
  });

  test(`${engine}: every promise, option and part of the interface is asked or refused`, async () => {
    for (const subject of await subjectsOf(engine)) {
      const cases = conformanceCases(subject);
      const asked = new Set(cases.filter((each) => !each.status.startsWith("not")).map((each) => each.promise));
      const holes = [...PROMISES, ...OPTIONS, ...SURFACE].filter((each) => !asked.has(each));
      assert.deepEqual(holes, [], `${subject.name} is never asked for ${holes.join(", ")}`);
    }
  });

  test(`${engine}: what cannot be asked has a reason`, async () => {
    for (const subject of await subjectsOf(engine)) {
      const silent = HOOKS.filter((hook) => subject.hooks?.[hook] === undefined && !subject.whyNot?.[hook]);
      assert.deepEqual(silent, [], `${subject.name} has no ${silent.join(", ")} and does not say why`);
      assert.ok(subject.url !== undefined, `${subject.name} cannot be reached from another process`);
    }
  });
}

test("the ids of the cases are different", () => {
  const ids = CASES.map((each) => each.id);
  assert.equal(new Set(ids).size, ids.length);
});

test("every promise has several cases", () => {
  for (const promise of PROMISES.filter((each) => each !== "S3")) {
    const count = CASES.filter((each) => each.id.startsWith(`${promise}/`)).length;
    assert.ok(count >= 2, `${promise} has ${count} case`);
  }
});
