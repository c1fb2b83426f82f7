/** When a session may know that nobody is in a container but itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { follows, Solitude } from "../../../src/engines/zookeeper/solitude.ts";

const EPOCH = 2n ** 32n;

test("the next number follows, no other does", () => {
  const last = { sequence: 7, czxid: 100n };
  assert.ok(follows(last, { sequence: 8, czxid: 102n }));
  assert.ok(!follows(last, { sequence: 9, czxid: 104n }), "somebody came in between, and may be there");
  assert.ok(!follows(last, { sequence: 7, czxid: 104n }));
  assert.ok(!follows(last, { sequence: 0, czxid: 104n }), "the counter has started again");
  assert.ok(!follows(last, { sequence: -(2 ** 31), czxid: 104n }));
});

test("as soon as the counter could have come back to the same number, nothing follows", () => {
  // Since node n was created: it and its container are removed, the container is made, numbers 0 to n are given, then n + 1.
  for (const sequence of [0, 1, 7, 1_000]) {
    const last = { sequence, czxid: 100n };
    const restarted = 100n + 3n + BigInt(sequence + 1) + 1n;
    assert.ok(!follows(last, { sequence: sequence + 1, czxid: restarted }), `after ${sequence}`);
    assert.ok(follows(last, { sequence: sequence + 1, czxid: restarted - 1n }), `after ${sequence}, one less`);
  }
});

test("after a new leader nothing follows", () => {
  const last = { sequence: 2 ** 30, czxid: 5n * EPOCH + 100n };
  assert.ok(!follows(last, { sequence: 2 ** 30 + 1, czxid: 6n * EPOCH + 1n }));
});

test("what was left is taken once, and not when too much has happened since", () => {
  const solitude = new Solitude();
  const last = { sequence: 3, czxid: 100n };
  solitude.left("/locks/a", last);
  assert.equal(solitude.take("/locks/b", 101n), undefined);
  assert.deepEqual(solitude.take("/locks/a", 101n), last);
  assert.equal(solitude.take("/locks/a", 101n), undefined);
  solitude.left("/locks/a", last);
  assert.equal(solitude.take("/locks/a", 107n), undefined);
});

test("it grows no further than its limit", () => {
  const solitude = new Solitude();
  for (let name = 0; name < 10_001; name++) solitude.left(`/locks/${name}`, { sequence: 3, czxid: 100n });
  assert.equal(solitude.take("/locks/0", 101n), undefined);
  assert.notEqual(solitude.take("/locks/10000", 101n), undefined);
});
