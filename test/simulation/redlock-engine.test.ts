/**
 * The redlock engine, its quorums, tokens and guards, with its own scripts in a Lua interpreter, over a simulated network to
 * nodes that freeze and are restarted empty.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { play, programOf, type SettingKind } from "./play.ts";
import type { Program } from "./program.ts";
import { keepPromises } from "./promises.ts";
import { redlockWorld } from "./worlds/redlock.ts";

const SEEDS = 20;
/** Grants for each seed, on average. */
const LEAST = 15;

/** Nodes are restarted on purpose, and the engine warns of each. */
const warnings = process.listeners("warning");
before(() => process.removeAllListeners("warning"));
after(() => warnings.forEach((listener) => process.on("warning", listener)));

test(`three nodes: ${SEEDS} seeds keep every promise`, () => keepPromises(redlockWorld(), SEEDS, LEAST));

test("five nodes: some seeds", () => keepPromises(redlockWorld({ nodes: 5 }), SEEDS / 4, LEAST));

test("the same seed gives the same world", async () => {
  const kind = redlockWorld();
  const first = await play(programOf(7, kind), kind);
  assert.deepEqual(await play(programOf(7, kind), kind), first);
});

async function isNoticed(kind: SettingKind, promise: RegExp, seeds = 150): Promise<void> {
  const texts: string[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const { complaints } = await play(programOf(seed, kind), kind);
    texts.push(...complaints.map(({ text }) => text));
    if (texts.some((text) => promise.test(text))) return;
  }
  assert.fail(texts.slice(0, 20).join("\n") || `${seeds} seeds found nothing`);
}

test("planted: one node is enough: two hold at once", () => isNoticed(redlockWorld({ quorum: 1 }), /^S1/));

const FAIR = { lost: 0, doubled: 0, lostBells: 0, slow: 0, slowMs: 0 };

const LOCK = { do: "lock", kind: "mutex", name: 0, waitMs: null } as const;

test("nodes that were restarted empty have no vote; planted: with one, two hold at once", async () => {
  const program: Program = {
    seed: 1,
    weather: FAIR,
    steps: [
      { ...LOCK, atMs: 100, client: 0, holdMs: 700 },
      { atMs: 150, do: "restart", server: 0 },
      { atMs: 160, do: "restart", server: 1 },
      { ...LOCK, atMs: 180, client: 1, holdMs: 10, waitMs: 300 },
    ],
  };
  const promises = async (kind: SettingKind): Promise<string[]> =>
    (await play(program, kind)).complaints.map(({ text }) => text.slice(0, 2));
  assert.ok((await promises(redlockWorld({ restartGuard: false, careless: true }))).includes("S1"));
  assert.ok(!(await promises(redlockWorld({ careless: true }))).includes("S1"));
});

test("a node that is frozen when somebody begins to wait holds nobody up", async () => {
  const program: Program = {
    seed: 1,
    weather: FAIR,
    steps: [
      { ...LOCK, atMs: 100, client: 0, holdMs: 200 },
      { atMs: 150, do: "freeze", server: 0, ms: 4_000 },
      { ...LOCK, atMs: 160, client: 1, holdMs: 10 },
    ],
  };
  const { complaints, history } = await play(program, redlockWorld());
  assert.deepEqual(complaints, []);
  const [, second] = history.filter(({ kind }) => kind === "granted");
  assert.ok(second !== undefined && second.atMs < 1_000, `granted at ${second?.atMs} ms`);
});
