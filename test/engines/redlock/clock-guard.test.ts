import assert from "node:assert/strict";
import { test } from "node:test";
import { ClockGuard } from "../../../src/engines/redlock/clock-guard.ts";

const QUARANTINE_MS = 60_000;

/** A guard, and nodes whose clocks are their offset from ours; each reply takes 2 ms. */
function guarded(offsets: readonly number[]) {
  const guard = new ClockGuard({ maxSkewMs: 250, quarantineMs: QUARANTINE_MS });
  const clocks = [...offsets];
  let nowMs = 0;
  return {
    guard,
    clocks,
    /** Samples all nodes every second for so long. */
    watch: (ms: number, asked = clocks.map((_, node) => node)) => {
      for (const endMs = nowMs + ms; nowMs < endMs; nowMs += 1_000) {
        for (const node of asked) guard.sample(node, nowMs, nowMs + 2, nowMs + 1 + (clocks[node] ?? 0));
      }
    },
    trusted: () => clocks.flatMap((_, node) => (guard.inStep(node, nowMs) ? [node] : [])),
  };
}

test("clocks in step are trusted, whatever time they show", () => {
  const { watch, trusted } = guarded([1e12, 1e12 + 100, 1e12 - 100]);
  watch(1_000);
  assert.deepEqual(trusted(), [0, 1, 2]);
  watch(600_000);
  assert.deepEqual(trusted(), [0, 1, 2]);
});

test("a clock nobody has read is not trusted", () => {
  const { watch, trusted } = guarded([0, 0, 0]);
  watch(1_000, [0, 1]);
  assert.deepEqual(trusted(), [0, 1]);
});

for (const [name, stepMs] of [
  ["forward", 5_000],
  ["back", -5_000],
] as const) {
  test(`a clock that jumps ${name} loses its vote until it has been in step for the whole quarantine`, () => {
    const { watch, clocks, trusted } = guarded([0, 0, 0, 0, 0]);
    watch(10_000);
    clocks[2] = stepMs;
    watch(1_000);
    assert.deepEqual(trusted(), [0, 1, 3, 4]);
    // It stays out while it differs from the others, however long.
    watch(200_000);
    assert.deepEqual(trusted(), [0, 1, 3, 4]);
    clocks[2] = 0;
    watch(QUARANTINE_MS - 2_000);
    assert.deepEqual(trusted(), [0, 1, 3, 4]);
    watch(4_000);
    assert.deepEqual(trusted(), [0, 1, 2, 3, 4]);
  });
}

test("a clock that jumps forth and back between two samples that we saw is noticed for what we saw", () => {
  const { watch, clocks, trusted } = guarded([0, 0, 0]);
  watch(5_000);
  clocks[0] = 1_000;
  watch(1_000);
  clocks[0] = 0;
  watch(1_000);
  assert.deepEqual(trusted(), [1, 2]);
});

test("small steps that add up within the quarantine are noticed", () => {
  const { watch, clocks, trusted } = guarded([0, 0, 0]);
  watch(5_000);
  for (let steps = 0; steps < 4; steps++) {
    clocks[1] = (clocks[1] ?? 0) + 100;
    watch(5_000);
  }
  assert.deepEqual(trusted(), [0, 2]);
});

test("a rate that differs by 500 ppm is no step, for hours", () => {
  const { watch, clocks, trusted } = guarded([0, 0, 0]);
  // All drift together: what is compared between them stays, what is compared with us moves slowly.
  for (let second = 0; second < 3_600; second++) {
    for (const node of [0, 1, 2]) clocks[node] = second * 0.5;
    watch(1_000);
  }
  assert.deepEqual(trusted(), [0, 1, 2]);
});

test("a client that has just started sees a clock that is off from the others", () => {
  const { watch, trusted, guard } = guarded([0, 0, 60_000, 0, 0]);
  watch(1_000);
  assert.deepEqual(trusted(), [0, 1, 3, 4]);
  assert.equal(guard.skewMs(2), 60_000);
});

test("of two clocks that disagree neither is believed", () => {
  const { watch, trusted } = guarded([0, 60_000, 0]);
  watch(1_000, [0, 1]);
  assert.deepEqual(trusted(), []);
});

test("when all clocks move at once, none is believed: we may have been suspended, or all may have been set", () => {
  const { watch, clocks, trusted } = guarded([0, 0, 0]);
  watch(5_000);
  clocks.fill(10_000);
  watch(1_000);
  assert.deepEqual(trusted(), []);
  watch(QUARANTINE_MS);
  assert.deepEqual(trusted(), [0, 1, 2]);
});

test("a slow reply is not taken for a jump, and does not hide one for long", () => {
  const { guard, clocks, watch, trusted } = guarded([0, 0, 0]);
  watch(5_000);
  guard.sample(1, 5_000, 6_500, 5_010);
  assert.deepEqual(trusted(), [0, 1, 2]);
  clocks[1] = 700;
  guard.sample(1, 5_000, 6_500, 5_710);
  watch(1_000);
  assert.deepEqual(trusted(), [0, 2]);
});

test("replies of others that were read late put nobody in the wrong", () => {
  const { guard, watch, trusted } = guarded([0, 0, 0]);
  watch(2_000);
  // A busy client: the nodes' clocks agree, but two replies lay unread for most of a second.
  for (const node of [1, 2]) guard.sample(node, 2_000, 2_800, 2_001);
  guard.sample(0, 2_800, 2_802, 2_801);
  assert.deepEqual(trusted(), [0, 1, 2]);
});

test("a jump by more than replies are late is noticed for all that", () => {
  const { guard, trusted } = guarded([0, 0, 0]);
  for (const node of [0, 1]) guard.sample(node, 0, 800, 400);
  // A client that has just started: it has nothing to compare with but the other nodes.
  guard.sample(2, 0, 800, 400 + 1_100);
  assert.deepEqual(trusted(), [0, 1]);
});
