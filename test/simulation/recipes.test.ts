/**
 * The recipes on the simulated engine against the pure rule, in programs that fast-check draws and shrinks: whatever the
 * network does, those who hold are such as the rule lets in together, and in the end everything is free.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Weather } from "../../src/testing/simulation/network.ts";
import { play, type SettingKind } from "./play.ts";
import * as plants from "./plants.ts";
import { describeProgram, type Kind, type Program, type Step } from "./program.ts";
import { leaseWorld } from "./worlds/lease.ts";

const RUNS = Number(process.env["HOLDFAST_RUNS"] ?? 40);

const client = fc.nat(3);
const name = fc.nat(1);
const atMs = fc.nat(2_500);
const holdMs = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 60 }) }, fc.integer({ min: 1, max: 900 }));
const waitMs = fc.oneof(fc.constant(null), fc.nat(600));
const kind: fc.Arbitrary<Kind> = fc.oneof(
  fc.constantFrom<Kind>("mutex", "read", "write"),
  fc.integer({ min: 1, max: 4 }),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("lock" as const), atMs, client, kind, name, holdMs, waitMs }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("set" as const),
      atMs,
      client,
      names: fc.array(name, { minLength: 1, maxLength: 3 }),
      shared: fc.boolean(),
      holdMs,
      waitMs,
    }),
  },
  fc.record({
    do: fc.constant("lead" as const),
    atMs,
    client,
    termMs: holdMs,
    forMs: fc.integer({ min: 1, max: 1_500 }),
  }),
  fc.record({ do: fc.constant("observe" as const), atMs, client, forMs: fc.integer({ min: 1, max: 1_500 }) }),
  fc.record({ do: fc.constant("pause" as const), atMs, client, ms: fc.nat(750) }),
  fc.record({ do: fc.constant("kill" as const), atMs, client }),
  fc.record({ do: fc.constant("freeze" as const), atMs, server: fc.constant(0), ms: fc.nat(450) }),
);

const share = (most: number): fc.Arbitrary<number> => fc.double({ min: 0, max: most, noNaN: true });
const weather: fc.Arbitrary<Weather> = fc.record({
  lost: share(0.05),
  doubled: share(0.03),
  lostBells: fc.oneof(fc.constant(0), share(0.2), fc.constant(1)),
  slow: share(0.1),
  slowMs: fc.constant(150),
});

/** `size`: about how many steps. */
function programs(size: number): fc.Arbitrary<Program> {
  const steps = fc.array(step, { minLength: 1, maxLength: size, size: "max" });
  return fc.record({ seed: fc.integer({ min: 1, max: 2 ** 30 }), weather, steps });
}

function keepsPromises(world: () => SettingKind, size: number): fc.IAsyncProperty<[Program]> {
  return fc.asyncProperty(programs(size), async (each) => {
    const { complaints } = await play(each, world());
    assert.equal(complaints[0], undefined, complaints.map(({ text, drawing }) => drawing ?? text).join("\n\n"));
  });
}

test("recipes keep their promises over a bad network", async () => {
  await fc.assert(keepsPromises(leaseWorld, 60), { numRuns: RUNS, reporter });
});

function reporter(details: fc.RunDetails<[Program]>): void {
  if (!details.failed) return;
  const [shortest] = details.counterexample ?? [];
  const steps = shortest === undefined ? "" : describeProgram(shortest);
  assert.fail(`seed ${details.seed}, path ${details.counterexamplePath}\n${steps}\n${String(details.errorInstance)}`);
}

test("planted: a semaphore with one permit too many: a program that shows it is found, and made short", async () => {
  const property = keepsPromises(() => leaseWorld({ plant: plants.givesOnePermitTooMany }), 12);
  const details = await fc.check(property, { numRuns: 500, seed: 1 });
  assert.ok(details.failed, `${details.numRuns} programs found nothing`);
  const [shortest] = details.counterexample ?? [];
  assert.ok(shortest !== undefined && shortest.steps.length <= 4, shortest && describeProgram(shortest));
  assert.match(String(details.errorInstance), /^AssertionError.*: S1: /);
});
