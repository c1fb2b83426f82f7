/** The pure parts of redlock: quorums, tokens, spans of time, proposals. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { systemClock } from "../../../src/engine/clock.ts";
import { marginMs } from "../../../src/engine/lease.ts";
import { Proposals } from "../../../src/engines/redlock/proposals.ts";
import { Tally } from "../../../src/engines/redlock/tally.ts";
import { holderLeftMs, nodeLeaseMs, quarantineMs, quorumOf, termsOf } from "../../../src/engines/redlock/terms.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

test("two quorums always share a node, whatever their number", () => {
  for (let nodes = 1; nodes <= 15; nodes++) {
    const quorum = quorumOf(nodes);
    assert.ok(2 * quorum > nodes && 2 * (quorum - 1) <= nodes);
  }
});

test("the terms are checked", () => {
  assert.equal(termsOf(5, {}).quorum, 3);
  assert.equal(termsOf(4, {}).quorum, 3);
  assert.throws(() => termsOf(2, {}), { code: "CONFIG" });
  assert.throws(() => termsOf(16, {}), { code: "CONFIG" });
  assert.throws(() => termsOf(3, { maxTtlMs: 5 }), { code: "CONFIG" });
  assert.throws(() => termsOf(3, { nodeTimeoutMs: Number.NaN }), { code: "CONFIG" });
});

test("a holder's deadline passes before its lease on any node, with clocks that run 1 % apart and step unnoticed", () => {
  const terms = termsOf(5, {});
  for (const ttlMs of [100, 1_000, 30_000, 60_000]) {
    const deadlineMs = (ttlMs - marginMs(ttlMs)) * 1.01; // our clock is slow
    const nodeEndMs = (nodeLeaseMs(ttlMs, terms) - terms.maxClockSkewMs) * 0.99; // the node's clock is fast
    assert.ok(deadlineMs < nodeEndMs, `${deadlineMs} ${nodeEndMs}`);
    // What a holder may count on is over before a node that has forgotten its vote votes again.
    assert.ok(deadlineMs < quarantineMs({ ...terms, maxTtlMs: ttlMs }) * 0.99 + marginMs(ttlMs));
    assert.ok(Math.abs(holderLeftMs(nodeLeaseMs(ttlMs, terms), terms) - ttlMs) < 1);
  }
});

test("a ballot with equal counters is won by the quorum's last vote", () => {
  const tally = new Tally(5, 3);
  tally.voted(0, 7);
  tally.voted(1, 7);
  assert.equal(tally.state, "open");
  tally.voted(2, 7);
  assert.equal(tally.state, "won");
  assert.equal(tally.token, 7);
  assert.deepEqual(tally.toRaise(), []);
});

test("lower counters have to be raised, each is asked once, and a late vote with the token counts as well", () => {
  const tally = new Tally(5, 3);
  tally.voted(0, 7);
  tally.voted(1, 9);
  tally.voted(2, 8);
  assert.equal(tally.token, 9);
  assert.equal(tally.state, "open");
  assert.deepEqual(tally.toRaise(), [0, 2]);
  assert.deepEqual(tally.toRaise(), []);
  tally.accepted(0);
  assert.equal(tally.state, "open");
  tally.voted(3, 9);
  assert.equal(tally.state, "won");
});

test("a later vote above the token cannot accept it", () => {
  const tally = new Tally(3, 2);
  tally.voted(0, 5);
  tally.voted(1, 6);
  tally.voted(2, 7);
  assert.equal(tally.token, 6);
  assert.deepEqual(tally.toRaise(), [0]);
  tally.refused(0);
  assert.equal(tally.state, "lost");
});

test("a refusal is final", () => {
  const tally = new Tally(3, 2);
  tally.voted(0, 5);
  tally.voted(1, 6);
  tally.refused(0);
  tally.accepted(0);
  assert.equal(tally.state, "open"); // the third may still accept
  tally.withheld(2);
  assert.equal(tally.state, "lost");
});

test("a ballot ends as soon as a quorum is out of reach: also with an even number of nodes and split votes", () => {
  for (let nodes = 3; nodes <= 9; nodes++) {
    const tally = new Tally(nodes, quorumOf(nodes));
    for (let node = 0; node < nodes; node++) {
      if (node % 2 === 0) tally.withheld(node);
      else tally.voted(node, 1);
    }
    assert.equal(tally.state, "lost", `${nodes} nodes`);
  }
});

test("whatever comes in whatever order: won only with a quorum at exactly the token, lost only when none can be", () => {
  const event = fc.record({
    node: fc.nat(4),
    kind: fc.constantFrom("vote", "out", "accept", "refuse"),
    counter: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const tally = new Tally(5, 3);
      const counters = new Map<number, number>();
      const out = new Set<number>();
      for (const { node, kind, counter } of events) {
        if (kind === "vote" && !out.has(node) && !counters.has(node)) counters.set(node, counter);
        if (kind === "vote") tally.voted(node, counter);
        if (kind === "out" && !counters.has(node)) out.add(node);
        if (kind === "out") tally.withheld(node);
        const below = tally.token !== undefined && (counters.get(node) ?? Infinity) < tally.token;
        if (kind === "accept" && below) {
          tally.accepted(node);
          if (tally.toRaise().length >= 0 && tally.state !== "lost") counters.set(node, tally.token ?? 0);
        }
        if (kind === "refuse" && below) tally.refused(node);
      }
      const at = [...counters.values()].filter((counter) => counter === tally.token).length;
      if (tally.state === "won") assert.ok(at >= 3);
      if (tally.token === undefined && tally.state === "lost") assert.ok(out.size > 2);
    }),
  );
});

test("a proposal is the wall clock in microseconds, or one more than what is ahead of it", () => {
  const clock = new ManualClock({ wallMs: 1_000 });
  const proposals = new Proposals(clock);
  assert.equal(proposals.next("a"), 1_000_000);
  proposals.heard("a", 2_000_000);
  assert.equal(proposals.next("a"), 2_000_001);
  assert.equal(proposals.next("b"), 1_000_000);
  clock.jumpWall(5_000);
  assert.equal(proposals.next("a"), 6_000_000);
  assert.ok(new Proposals(systemClock).next("a") < Number.MAX_SAFE_INTEGER);
});
