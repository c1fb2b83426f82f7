/** The recipes on the memory engine against the pure rule, in programs that fast-check draws and shrinks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { heldPrefix, type Wish } from "../../../src/engine/queue.ts";
import { memory } from "../../../src/engines/memory/index.ts";
import { ClosedError, connect, type HeldLock, type LockManager } from "../../../src/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

let programs = 0;
const RUNS = Number(process.env["HOLDFAST_RUNS"] ?? 150);

type Kind = "mutex" | "read" | "write" | number;

type Step =
  /** A number is a semaphore's permits. */
  | { readonly do: "ask"; readonly kind: Kind }
  | { readonly do: "try"; readonly kind: Kind }
  /** The one in the queue (held or pending) at this place, modulo its length. */
  | { readonly do: "leave"; readonly at: number }
  | { readonly do: "evict"; readonly at: number }
  | { readonly do: "wait"; readonly ms: number };

const kind: fc.Arbitrary<Kind> = fc.oneof(
  fc.constantFrom<Kind>("mutex", "read", "write"),
  fc.integer({ min: 1, max: 4 }),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("ask" as const), kind }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("try" as const), kind }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("leave" as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("evict" as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(40_000) }) },
);

interface Asked extends Wish {
  readonly abort: AbortController;
  lock: HeldLock | undefined;
}

function wishOf(kind: Kind): Wish {
  if (typeof kind === "number") return { mode: "shared", limit: kind };
  return kind === "read" ? { mode: "shared", limit: Infinity } : { mode: "exclusive", limit: 1 };
}

function recipe(locks: LockManager, kind: Kind): ReturnType<LockManager["mutex"]> {
  if (typeof kind === "number") return locks.semaphore("name", { permits: kind });
  if (kind === "mutex") return locks.mutex("name");
  return locks.readWriteLock("name")[kind];
}

/** The queue as the rule has it, beside the one in the engine. */
class Program {
  readonly clock: ManualClock = new ManualClock();
  readonly queue: Asked[] = [];
  held = 0;
  lastToken = 0n;

  async run(locks: readonly LockManager[], steps: readonly Step[]): Promise<void> {
    for (const [index, each] of steps.entries()) {
      const manager = locks[index % locks.length];
      assert.ok(manager);
      await this.#step(manager, each);
      await this.clock.advance(0);
      this.#check();
    }
  }

  async #step(locks: LockManager, each: Step): Promise<void> {
    if (each.do === "wait") return await this.clock.advance(each.ms);
    if (each.do === "try") return await this.#tryNow(locks, each.kind);
    if (each.do === "ask") return this.#ask(locks, each.kind);
    const asked = this.queue[each.at % Math.max(this.queue.length, 1)];
    if (asked === undefined) return;
    const at = this.queue.indexOf(asked);
    if (each.do === "evict" && asked.lock === undefined) return;
    this.queue.splice(at, 1);
    if (at < this.held) this.held--;
    if (asked.lock === undefined) asked.abort.abort();
    else if (each.do === "evict") assert.equal(await locks.evict("name", asked.lock.token), true);
    else await asked.lock.release();
  }

  #ask(locks: LockManager, kind: Kind): void {
    const asked: Asked = { ...wishOf(kind), abort: new AbortController(), lock: undefined };
    this.queue.push(asked);
    recipe(locks, kind)
      .acquire({ signal: asked.abort.signal })
      .then((lock) => {
        // Grants come one after the other, in the order of the queue, each with a higher token.
        assert.equal(this.queue.filter((other) => other.lock !== undefined).length, this.queue.indexOf(asked));
        assert.ok(lock.token > this.lastToken);
        this.lastToken = lock.token;
        asked.lock = lock;
      })
      .catch((error: unknown) => {
        // Whatever still waits at the end of the program is told that the manager is closed.
        if (!asked.abort.signal.aborted && !(error instanceof ClosedError)) throw error;
      });
  }

  async #tryNow(locks: LockManager, kind: Kind): Promise<void> {
    const wishes: Wish[] = [...this.queue, wishOf(kind)];
    const free = heldPrefix(wishes, this.held) === wishes.length;
    const lock = await recipe(locks, kind).tryAcquire();
    assert.equal(lock !== null, free);
    if (lock === null) return;
    assert.ok(lock.token > this.lastToken);
    this.lastToken = lock.token;
    this.queue.push({ ...wishOf(kind), abort: new AbortController(), lock });
    this.held = this.queue.length;
  }

  #check(): void {
    this.held = heldPrefix(this.queue, this.held);
    const granted = this.queue.map((each) => each.lock?.isHeld() === true);
    assert.deepEqual(
      granted,
      this.queue.map((_, index) => index < this.held),
    );
  }
}

test("mutexes, readers, writers and semaphores of one name are held exactly as the rule says", async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const program = new Program();
    const name = `model ${++programs}`;
    const locks = await Promise.all([1, 2, 3].map(() => connect(memory({ clock: program.clock, name }))));
    try {
      await program.run(locks, steps);
    } finally {
      await Promise.all(locks.map((each) => each.close()));
    }
    assert.equal(program.clock.keptAliveBy, 0, "something still waits");
  });
  await fc.assert(property, { numRuns: RUNS });
});

test("sets: no two that overlap are held at once, and every one is had in the end", async () => {
  const names = fc.array(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 4 });
  const mode = fc.constantFrom("exclusive" as const, "shared" as const);
  const wants = fc.array(fc.record({ names, mode, holdMs: fc.nat(50) }), { maxLength: 12 });
  const property = fc.asyncProperty(wants, async (sets) => {
    const clock = new ManualClock();
    const locks = await connect(memory({ clock }));
    const inside = new Set<{ names: readonly string[]; mode: string }>();
    let done = 0;
    const work = sets.map(async ({ names, mode, holdMs }) => {
      const set = await locks.acquireAll(names, { mode });
      assert.ok(set.isHeld());
      for (const other of inside) {
        const both = mode === "shared" && other.mode === "shared";
        assert.ok(both || set.names.every((name) => !other.names.includes(name)), "two overlap");
      }
      inside.add(set);
      await new Promise<void>((resolve) => void clock.after(holdMs, resolve));
      inside.delete(set);
      await set.release();
      done++;
    });
    await clock.advance(50 * sets.length + 1);
    await Promise.all(work);
    assert.equal(done, sets.length);
    await locks.close();
  });
  await fc.assert(property, { numRuns: RUNS });
});

/** What a callback does: a pause, or requests of its own, side by side or one after the other. */
interface Branch {
  readonly pauseMs: number;
  readonly together: boolean;
  readonly inner: readonly Branch[];
}

const { branch } = fc.letrec<{ branch: { pauseMs: number; together: boolean; inner: Branch[] } }>((tie) => ({
  branch: fc.record({
    pauseMs: fc.nat(5),
    together: fc.boolean(),
    inner: fc.oneof({ maxDepth: 3 }, fc.constant<Branch[]>([]), fc.array(tie("branch"), { maxLength: 3 })),
  }),
}));

test("re-entrancy: branches side by side never overlap, one token for all, and the lock is free afterwards", async () => {
  const property = fc.asyncProperty(fc.array(branch, { minLength: 1, maxLength: 3 }), async (tasks) => {
    const clock = new ManualClock();
    const locks = await connect(memory({ clock }));
    const mutex = locks.mutex("name", { reentrant: true });
    /** The chain of callbacks that are inside now; a new one may only be put on top of its own parent. */
    const stack: symbol[] = [];
    const enter = (each: Branch, parent: symbol | undefined, token: bigint | undefined): Promise<void> =>
      mutex.request(async (lock) => {
        assert.equal(stack.at(-1), parent, "another branch is inside");
        if (token !== undefined) assert.equal(lock.token, token);
        const self = Symbol("callback");
        stack.push(self);
        await new Promise<void>((resolve) => void clock.after(each.pauseMs, resolve));
        const inner = (one: Branch): Promise<void> => enter(one, self, lock.token);
        if (each.together) await Promise.all(each.inner.map(inner));
        else for (const one of each.inner) await inner(one);
        assert.equal(stack.pop(), self);
      });
    const work = Promise.all(tasks.map((each) => enter(each, undefined, undefined)));
    await clock.advance(100_000);
    await work;
    assert.deepEqual(stack, []);
    assert.ok(await locks.tryAcquire("name"));
    await locks.close();
  });
  await fc.assert(property, { numRuns: RUNS });
});

test("elections: one leader at a time, terms grow, and whoever is seen to lead does", async () => {
  const move = fc.oneof(
    fc.record({ do: fc.constantFrom("resign" as const, "evict" as const), ms: fc.constant(0) }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.nat(20_000) }),
  );
  const property = fc.asyncProperty(fc.array(move, { maxLength: 25 }), async (moves) => {
    const clock = new ManualClock();
    const managers = await Promise.all([1, 2, 3].map(() => connect(memory({ clock, name: "election" }))));
    const stop = new AbortController();
    let current: { readonly term: HeldLock; readonly resign: () => void } | undefined;
    let last = 0n;
    const serve = async (locks: LockManager, value: string): Promise<void> => {
      while (!stop.signal.aborted) {
        await locks.election("e").lead(
          async (term) => {
            assert.ok(current === undefined || !current.term.isHeld(), "two lead");
            assert.ok(term.token > last);
            last = term.token;
            const over = Promise.withResolvers<void>();
            current = { term, resign: over.resolve };
            term.signal.addEventListener("abort", () => over.resolve());
            await over.promise;
          },
          { signal: stop.signal, value },
        );
      }
    };
    const serving = managers.map((locks, index) => serve(locks, String(index)));
    await clock.advance(0);
    const [first] = managers;
    assert.ok(first);
    for (const each of moves) {
      if (each.do === "resign") current?.resign();
      else if (each.do === "evict" && current !== undefined) await first.evict("e", current.term.token);
      await clock.advance(each.ms);
      await clock.advance(0);
      const leader = await first.election("e").leader();
      assert.equal(leader?.token, current?.term.token);
      assert.ok(current?.term.isHeld());
    }
    stop.abort();
    await Promise.all(serving);
    await Promise.all(managers.map((locks) => locks.close()));
  });
  await fc.assert(property, { numRuns: RUNS });
});
