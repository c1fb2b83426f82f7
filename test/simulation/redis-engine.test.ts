/** The redis engine with its own scripts in a Lua interpreter, over a simulated network: what its queue lets in is compared with the rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, programOf } from "./play.ts";
import * as plants from "./plants.ts";
import { keepPromises } from "./promises.ts";
import { redisWorld } from "./worlds/redis.ts";

const SEEDS = 20;

test(`${SEEDS} seeds keep every promise`, () => keepPromises(redisWorld(), SEEDS));

test("planted: one permit too many is noticed", async () => {
  const kind = redisWorld(plants.givesOnePermitTooMany);
  for (let seed = 1; seed <= 20; seed++) {
    const { complaints } = await play(programOf(seed, kind), kind);
    if (complaints.some(({ text }) => text.startsWith("S1"))) return;
  }
  assert.fail("20 seeds found nothing");
});
