import assert from "node:assert/strict";
import { test } from "node:test";
import { nextStep, type NodeView } from "../../../src/engines/redlock/restart-guard.ts";
import { quarantineMs, termsOf } from "../../../src/engines/redlock/terms.ts";

const EMPTY = { run: "", maxTtlMs: 0, nodes: 0, high: 0 };
const node = (run: string, record: Partial<NodeView["record"]> = {}): NodeView => ({
  connected: true,
  run,
  record: { ...EMPTY, ...record },
  seenAtMs: 0,
});
const admitted = (run: string): NodeView => node(run, { run, high: 9 });
const away: NodeView = { ...node("?"), connected: false };
const terms = termsOf(3, {});

test("nothing is to be done while all that are there have their vote", () => {
  assert.deepEqual(nextStep([admitted("a"), admitted("b"), away], terms), { kind: "none" });
});

test("one that came back empty, or with what it had on disk, waits and reads a quorum of the others", () => {
  const step = { kind: "readmit", nodes: [2], sources: [0, 1] };
  assert.deepEqual(nextStep([admitted("a"), admitted("b"), node("c2")], terms), step);
  assert.deepEqual(nextStep([admitted("a"), admitted("b"), node("c2", { run: "c", high: 7 })], terms), step);
});

test("the operator may vouch for what is on disk, not for what is not there", () => {
  const durable = termsOf(3, { durableNodes: true });
  const kept = [admitted("a"), node("b2", { run: "b", high: 7 }), node("c2")];
  assert.deepEqual(nextStep(kept, durable), { kind: "admit-durable", nodes: [1] });
  const after = [admitted("a"), admitted("b2"), node("c2")];
  assert.deepEqual(nextStep(after, durable), { kind: "readmit", nodes: [2], sources: [0, 1] });
});

test("a new deployment starts by itself after the wait, at once when somebody knows that it is new", () => {
  const all = [node("a"), node("b"), node("c")];
  assert.deepEqual(nextStep(all, terms), { kind: "bootstrap", nodes: [0, 1, 2], waitMs: quarantineMs(terms) });
  for (const knowing of [{ bootstrap: true }, { durableNodes: true }]) {
    assert.deepEqual(nextStep(all, termsOf(3, knowing)), { kind: "bootstrap", nodes: [0, 1, 2], waitMs: 0 });
  }
});

test("a bootstrap that was broken off goes on", () => {
  const half = [node("a", { run: "a" }), node("b"), node("c")];
  assert.deepEqual(nextStep(half, terms), { kind: "bootstrap", nodes: [1, 2], waitMs: quarantineMs(terms) });
});

test("a new deployment does not start while a node is missing", () => {
  const step = nextStep([node("a"), node("b"), away], terms);
  assert.equal(step.kind, "stuck");
});

test("a majority that was restarted at once stays without a vote until somebody says so, and then waits all the same", () => {
  const lost = [admitted("a"), node("b2"), node("c2")];
  const step = nextStep(lost, terms);
  assert.equal(step.kind, "stuck");
  assert.match(step.kind === "stuck" ? step.why : "", /bootstrap/);
  const told = nextStep(lost, termsOf(3, { bootstrap: true }));
  assert.deepEqual(told, { kind: "bootstrap", nodes: [1, 2], waitMs: quarantineMs(terms) });
});
