/**
 * The zookeeper engine and its client, byte for byte, over a simulated network to a simulated server: sessions that expire,
 * local deadlines, ephemeral nodes, watches that are set again, a server that freezes and is restarted.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble } from "../../src/testing/history/assemble.ts";
import { endingOf } from "../../src/testing/history/operation.ts";
import { play, programOf, report } from "./play.ts";
import type { Program } from "./program.ts";
import { zookeeperWorld } from "./worlds/zookeeper.ts";

const SEEDS = 15;

test(`${SEEDS} seeds keep every promise`, async () => {
  const kind = zookeeperWorld();
  let grants = 0;
  let losses = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await play(programOf(seed, kind), kind);
    assert.deepEqual(outcome.complaints, [], outcome.complaints.length > 0 ? await report(outcome, kind) : "");
    grants += outcome.grants;
    const endings = assemble(outcome.history)
      .operations.filter(({ grantedAtMs }) => grantedAtMs !== undefined)
      .map(endingOf);
    losses += endings.filter((ending) => ending === "deadline" || ending === "lost").length;
  }
  assert.ok(grants > SEEDS * 15, `only ${grants} grants: the simulation has hardly locked anything`);
  assert.ok(losses > SEEDS / 5, `only ${losses} locks were lost with their session`);
});

test("the same seed gives the same world", async () => {
  const kind = zookeeperWorld();
  const first = await play(programOf(7, kind), kind);
  assert.deepEqual(await play(programOf(7, kind), kind), first);
});

test("planted: a server that ends sessions before their time: two hold at once", async () => {
  const kind = zookeeperWorld({ hasty: true });
  for (let seed = 1; seed <= 60; seed++) {
    const { complaints } = await play(programOf(seed, kind), kind);
    if (complaints.some(({ text }) => text.startsWith("S1"))) return;
  }
  assert.fail("60 seeds found nothing");
});

test("an observer of an election goes on being told after its session has ended", async () => {
  const program: Program = {
    seed: 1,
    weather: { lost: 0, doubled: 0, lostBells: 0, slow: 0, slowMs: 0 },
    steps: [
      { atMs: 100, do: "observe", client: 0, forMs: 8_000 },
      { atMs: 200, do: "pause", client: 0, ms: 2_500 },
      { atMs: 4_000, do: "lead", client: 1, forMs: 500, termMs: 400 },
    ],
  };
  const { complaints, sightings } = await play(program, zookeeperWorld());
  assert.deepEqual(complaints, []);
  assert.ok(sightings > 0, "the term of client-1 was not seen");
});
