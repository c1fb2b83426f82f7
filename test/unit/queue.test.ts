/** The rule of the queue against a naive restatement of it, and what a waiter may rely on when it watches those ahead. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { heldPrefix, mayHold, watched, type Wish } from "../../src/engine/queue.ts";

const RUNS = 3_000;

const mutex: Wish = { mode: "exclusive", limit: 1 };
const reader: Wish = { mode: "shared", limit: Infinity };
const permit = (limit: number): Wish => ({ mode: "shared", limit });

const wish = fc.oneof(
  { weight: 2, arbitrary: fc.constant(mutex) },
  { weight: 3, arbitrary: fc.constant(reader) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 5 }).map(permit) },
);
const queues = fc.array(wish, { maxLength: 12 });

/** Shared requests alone: the part of the rule where limits meet. */
const sharedQueues = fc.array(fc.oneof(fc.constant(reader), fc.integer({ min: 1, max: 5 }).map(permit)), {
  maxLength: 12,
});

/** The rule as the design states it, word by word: the first pending request joins the prefix, as often as one can. */
function naivePrefix(queue: readonly Wish[], held: number): number {
  const prefix = queue.slice(0, held);
  for (const first of queue.slice(held)) {
    const joins =
      first.mode === "exclusive"
        ? prefix.length === 0
        : prefix.every((each) => each.mode === "shared") &&
          prefix.length < Math.min(first.limit, ...prefix.map((each) => each.limit));
    if (!joins) break;
    prefix.push(first);
  }
  return prefix.length;
}

function check<Value>(values: fc.Arbitrary<Value>, property: (value: Value) => void): void {
  fc.assert(fc.property(values, property), { numRuns: RUNS });
}

/** A queue with one of its positions. */
const queueAndIndex = fc
  .oneof(queues, sharedQueues)
  .filter((queue) => queue.length > 0)
  .chain((queue) => fc.record({ queue: fc.constant(queue), index: fc.nat({ max: queue.length - 1 }) }));

test("the empty queue holds nothing", () => {
  assert.equal(heldPrefix([]), 0);
});

test("a mutex, readers, and a semaphore of three permits", () => {
  assert.equal(heldPrefix([mutex, mutex, reader]), 1);
  assert.equal(heldPrefix([reader, reader, mutex, reader]), 2);
  assert.equal(heldPrefix([permit(3), permit(3), permit(3), permit(3)]), 3);
  assert.equal(heldPrefix([permit(2), permit(5), permit(5)]), 2, "the smallest limit of the prefix counts");
  assert.equal(heldPrefix([permit(5), permit(5), permit(2), permit(5)]), 2, "the own limit counts; nobody overtakes");
});

test("the held prefix is what the naive restatement says", () => {
  const started = queues.chain((queue) =>
    fc.record({ queue: fc.constant(queue), held: fc.nat({ max: queue.length }) }),
  );
  check(started, ({ queue, held }) => assert.equal(heldPrefix(queue, held), naivePrefix(queue, held)));
});

test("safety: one exclusive request alone, or shared ones below every limit among them", () => {
  check(queues, (queue) => {
    const prefix = queue.slice(0, heldPrefix(queue));
    if (prefix.some((each) => each.mode === "exclusive")) assert.equal(prefix.length, 1);
    else assert.ok(prefix.every((each) => prefix.length <= each.limit));
  });
});

test("liveness: the head is always held", () => {
  check(
    queues.filter((queue) => queue.length > 0),
    (queue) => assert.ok(heldPrefix(queue) >= 1),
  );
});

test("a request that leaves never takes the lock from another", () => {
  check(queueAndIndex, ({ queue, index }) => {
    const before = heldPrefix(queue);
    const after = heldPrefix(queue.toSpliced(index, 1));
    assert.ok(after >= (index < before ? before - 1 : before));
  });
});

test("a request that comes never takes the lock from another, and never changes who is held before it", () => {
  check(fc.record({ queue: queues, wish }), ({ queue, wish }) => {
    const before = heldPrefix(queue);
    const after = heldPrefix([...queue, wish]);
    assert.ok(after === before || (before === queue.length && after === before + 1));
  });
});

test("mayHold asks the same of one request", () => {
  check(queueAndIndex, ({ queue, index }) => assert.equal(mayHold(queue, index), index < heldPrefix(queue)));
});

test("the answer costs no more than its own length", () => {
  const lookedAt: Wish[] = [];
  function* long(): Iterable<Wish> {
    for (let each = 0; each < 100_000; each++) {
      lookedAt.push(permit(3));
      yield permit(3);
    }
  }
  const queue = { 0: permit(3), length: 100_000, [Symbol.iterator]: () => long()[Symbol.iterator]() };
  assert.equal(heldPrefix(queue as unknown as readonly Wish[]), 3);
  assert.ok(lookedAt.length <= 4, `looked at ${lookedAt.length}`);
});

test("watched: positions ahead, nearest first, none twice; none exactly when the request may be held", () => {
  check(queueAndIndex, ({ queue, index }) => {
    const positions = watched(queue, index);
    assert.equal(positions.length === 0, mayHold(queue, index));
    assert.ok(positions.every((each) => each >= 0 && each < index));
    assert.deepEqual(
      positions,
      [...new Set(positions)].sort((left, right) => right - left),
    );
  });
});

test("watched: a mutex watches the one just ahead, a reader the nearest exclusive one", () => {
  assert.deepEqual(watched([mutex, reader, reader, mutex], 3), [2]);
  assert.deepEqual(watched([mutex, reader, mutex, reader, reader], 4), [2]);
  assert.deepEqual(watched([mutex, reader], 1), [0]);
  assert.deepEqual(watched([reader, reader], 1), []);
  assert.deepEqual(watched([], 0), []);
});

test("watched: never more than the smallest limit in question", () => {
  check(queueAndIndex, ({ queue, index }) => {
    const limits = queue.slice(0, index + 1).map((each) => (each.mode === "exclusive" ? 1 : each.limit));
    assert.ok(watched(queue, index).length <= Math.min(...limits));
  });
});

test("watched: while all those watched are there, no others that leave make it grantable", () => {
  const cases = queueAndIndex.chain(({ queue, index }) =>
    fc.record({
      queue: fc.constant(queue),
      index: fc.constant(index),
      leaving: fc.array(fc.boolean(), { minLength: index, maxLength: index }),
    }),
  );
  check(cases, ({ queue, index, leaving }) => {
    const positions = watched(queue, index);
    if (positions.length === 0) return;
    const ahead = queue.slice(0, index).filter((_, each) => positions.includes(each) || leaving[each] !== true);
    const own = queue[index];
    assert.ok(own);
    assert.equal(mayHold([...ahead, own], ahead.length), false);
  });
});

test("watched: a waiter that wakes only for those it watches is granted exactly when the rule says so", () => {
  const cases = queueAndIndex.chain(({ queue, index }) =>
    fc.record({
      queue: fc.constant(queue.slice(0, index + 1)),
      order: fc.shuffledSubarray(
        Array.from({ length: index }, (_, each) => each),
        { minLength: index, maxLength: index },
      ),
    }),
  );
  check(cases, ({ queue, order }) => {
    // Everybody keeps its original position as a name; positions in the shrinking queue are computed from it.
    let present = queue.map((wish, name) => ({ wish, name }));
    const wishes = (): Wish[] => present.map((each) => each.wish);
    const watching = (): Set<number | undefined> =>
      new Set(watched(wishes(), present.length - 1).map((position) => present[position]?.name));
    let names = watching();
    for (const name of order) {
      present = present.filter((each) => each.name !== name);
      if (names.has(name)) names = watching();
      assert.equal(names.size === 0, mayHold(wishes(), present.length - 1));
    }
    assert.equal(names.size, 0, "with nobody ahead it is held");
  });
});
