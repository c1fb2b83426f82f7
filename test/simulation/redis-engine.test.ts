/** The redis engine with its own scripts in a Lua interpreter, over a simulated network: what its queue lets in is compared with the rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, programOf, report } from "./play.ts";
import * as plants from "./plants.ts";
import { redisWorld } from "./worlds/redis.ts";

const SEEDS = 20;

test(`${SEEDS} seeds keep every promise`, async () => {
  const kind = redisWorld();
  let grants = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await play(programOf(seed, kind), kind);
    assert.deepEqual(outcome.complaints, [], outcome.complaints.length > 0 ? await report(outcome, kind) : "");
    grants += outcome.grants;
  }
  assert.ok(grants > SEEDS * 20, `only ${grants} grants: the simulation has hardly locked anything`);
});

test("planted: one permit too many is noticed", async () => {
  const kind = redisWorld(plants.givesOnePermitTooMany);
  for (let seed = 1; seed <= 20; seed++) {
    const { complaints } = await play(programOf(seed, kind), kind);
    if (complaints.some(({ text }) => text.startsWith("S1"))) return;
  }
  assert.fail("20 seeds found nothing");
});
