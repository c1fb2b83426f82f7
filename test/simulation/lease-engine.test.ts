/**
 * The recipes, the core and the lease engine over a simulated network: late, lost and doubled messages, lost bells, paused
 * and killed clients, a frozen server, clocks that drift. `npm run simulate` goes on for as long as you like.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, programOf, report, type SettingKind } from "./play.ts";
import * as plants from "./plants.ts";
import { keepPromises } from "./promises.ts";
import { leaseWorld } from "./worlds/lease.ts";

const SEEDS = 50;

test(`${SEEDS} seeds keep every promise`, () => keepPromises(leaseWorld(), SEEDS));

test("the same seed gives the same world", async () => {
  const kind = leaseWorld();
  const first = await play(programOf(7, kind), kind);
  assert.deepEqual(await play(programOf(7, kind), kind), first);
  assert.notEqual((await play(programOf(8, kind), kind)).events, first.events);
});

/** What the first seeds complain of, up to the first complaint that begins with `promise`. */
async function found(kind: SettingKind, promise: RegExp, seeds = 40): Promise<string[]> {
  const texts: string[] = [];
  for (let seed = 1; seed <= seeds && !texts.some((text) => promise.test(text)); seed++) {
    const { complaints } = await play(programOf(seed, kind), kind);
    texts.push(...complaints.map(({ text }) => text));
  }
  return texts;
}

const PLANTED: readonly [what: string, plant: () => plants.Plant, promise: RegExp][] = [
  ["renews what is gone", plants.renewsWhatIsGone, /^S[12]/],
  ["promises a longer lease than it keeps", () => plants.promisesTooMuch, /^S1/],
  ["forgets to release", plants.forgetsToRelease, /^L1/],
  ["gives one permit too many", () => plants.givesOnePermitTooMany, /^S1/],
  ["lets writers in as readers", () => plants.letsWritersShare, /^S1/],
  ["releases whoever holds the name", plants.releasesWhoeverHolds, /^S4/],
  ["leaves those who gave up in the queue", () => plants.neverWithdraws, /^L[135]/],
];

for (const [what, plant, promise] of PLANTED) {
  test(`a store that ${what} is noticed`, async () => {
    const texts = await found(leaseWorld({ plant: plant() }), promise);
    assert.ok(
      texts.some((text) => promise.test(text)),
      texts.slice(0, 20).join("\n"),
    );
  });
}

test("a seed that fails is made short, and drawn", async () => {
  const kind = leaseWorld({ plant: plants.givesOnePermitTooMany });
  for (let seed = 1; ; seed++) {
    const outcome = await play(programOf(seed, kind), kind);
    if (!outcome.complaints[0]?.text.startsWith("S1")) continue;
    const text = await report(outcome, kind);
    const [, steps] = /\((\d+) steps\)/.exec(text) ?? [];
    assert.ok(Number(steps) <= 8, text);
    assert.match(text, /client-\d asks for name-\d \(one of \d permits\)/);
    assert.match(text, /client-\d shared #\d+ .*\[=+/, "a time line");
    return;
  }
});
