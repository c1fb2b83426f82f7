/** `election`: one leader at a time, its term numbered by the token, its value published. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type HeldLock, type Leader } from "../../../src/index.ts";
import { EngineUnavailableError } from "../../../src/engine/errors.ts";
import { memory } from "../../../src/engines/memory/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const soon = () => new Promise((resolve) => setTimeout(resolve, 10));

test("campaign waits its turn; leader() tells who leads, with its value and its term", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  assert.equal(await election.leader(), null);
  const first = await election.campaign({ value: "http://one" });
  const seen = await election.leader();
  assert.equal(seen?.value, "http://one");
  assert.equal(seen.token, first.token);
  assert.equal(seen.pid, process.pid);
  const second = election.campaign({ value: "http://two" });
  await soon();
  assert.equal((await election.leader())?.value, "http://one", "a candidate is no leader");
  await first.release();
  const term = await second;
  assert.ok(term.token > first.token);
  assert.equal((await election.leader())?.value, "http://two");
  const controller = new AbortController();
  const third = election.campaign({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(third, /enough/);
  await term.release();
  assert.equal(await election.leader(), null);
  await locks.close();
});

test("lead: returning resigns and resolves, throwing resigns and rejects", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  const { signal } = new AbortController();
  await election.lead((term) => assert.ok(term.isHeld()), { signal });
  assert.equal(await election.leader(), null);
  await assert.rejects(
    election.lead(() => Promise.reject(new Error("bug")), { signal }),
    /bug/,
  );
  assert.equal(await election.leader(), null);
  await locks.close();
});

test("lead: a loss ends the term, not the candidacy", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  const { signal } = new AbortController();
  const terms: bigint[] = [];
  await election.lead(
    async (term) => {
      terms.push(term.token);
      if (terms.length === 3) return;
      await locks.evict("e", term.token);
      await new Promise((_, reject) => term.signal.addEventListener("abort", () => reject(term.signal.reason)));
    },
    { signal },
  );
  assert.equal(terms.length, 3);
  assert.ok(terms[0] !== undefined && terms[1] !== undefined && terms[0] < terms[1]);
  await locks.close();
});

test("lead: the signal ends a candidacy and a term; term.signal aborts with it", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  const stop = new AbortController();
  const leading = election.lead(
    (term) =>
      new Promise((_, reject) => {
        term.signal.addEventListener("abort", () => {
          assert.ok(term.isHeld(), "time to finish");
          reject(term.signal.reason);
        });
      }),
    { signal: stop.signal },
  );
  const waiting = election.lead(() => assert.fail("never elected"), { signal: stop.signal });
  await soon();
  stop.abort();
  await Promise.all([leading, waiting]);
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
  await election.lead(() => assert.fail("aborted before"), { signal: stop.signal });
  await locks.close();
});

test("lead: an error that has nothing to do with the abort is not swallowed", async () => {
  const locks = await connect("memory:");
  const stop = new AbortController();
  const leading = locks.election("e").lead(
    async (term) => {
      stop.abort();
      assert.ok(term.signal.aborted);
      throw new TypeError("bug in the clean-up");
    },
    { signal: stop.signal },
  );
  await assert.rejects(leading, /bug in the clean-up/);
  await locks.close();
});

test("lead: goes on standing while the engine cannot be reached", async () => {
  const engine = memory();
  const request = engine.request.bind(engine);
  let failures = 3;
  engine.request = (spec, signal) =>
    failures-- > 0 ? Promise.reject(new EngineUnavailableError("down")) : request(spec, signal);
  const locks = await connect(engine);
  let elected = false;
  await locks.election("e").lead(() => void (elected = true), { signal: new AbortController().signal });
  assert.ok(elected && failures < 0);
  await locks.close();
});

test("grace: the signal aborts before the deadline, and no new leader comes before it is over", async () => {
  const clock = new ManualClock();
  const first = await connect(memory({ clock, name: "grace" }));
  const second = await connect(memory({ clock, name: "grace" }));
  const term = await first.election("e", { ttlMs: 9_000, graceMs: 3_000, maxHoldMs: 10_000 }).campaign();
  let next: HeldLock | undefined;
  const elected = second
    .election("e")
    .campaign()
    .then((lock) => (next = lock));
  await clock.advance(7_000);
  assert.ok(term.signal.aborted && term.isHeld(), "in the grace");
  assert.equal(next, undefined);
  await clock.advance(2_900);
  assert.equal(next, undefined, "not before the old deadline");
  await clock.advance(200);
  assert.equal(term.isHeld(), false);
  await elected;
  await first.close();
  await second.close();
});

test("observe: the leader now, then each change, woken by the engine's bell", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  const seen: (string | null)[] = [];
  const stop = new AbortController();
  const observing = (async () => {
    for await (const leader of election.observe({ signal: stop.signal })) seen.push(leader?.value ?? null);
  })();
  await soon();
  const one = await election.campaign({ value: "one" });
  await soon();
  await one.renew();
  await one.release();
  await soon();
  const two = await election.campaign({ value: "two" });
  await soon();
  stop.abort();
  await observing;
  assert.deepEqual(seen, [null, "one", null, "two"]);
  await two.release();
  await locks.close();
});

test("observe: without a bell the engine is asked every `everyMs`, and no more often", async () => {
  const clock = new ManualClock();
  const engine = memory({ clock });
  const inspect = engine.inspect.bind(engine);
  let asked = 0;
  const deaf = Object.create(engine, {
    watch: { value: undefined },
    request: { value: engine.request.bind(engine) },
    open: { value: engine.open.bind(engine) },
    close: { value: engine.close.bind(engine) },
    traits: { value: { ...engine.traits } },
    inspect: {
      value: (name: string) => {
        asked++;
        return inspect(name);
      },
    },
  }) as typeof engine;
  const locks = await connect(deaf);
  const election = locks.election("e");
  const stop = new AbortController();
  const seen: (Leader | null)[] = [];
  const observing = (async () => {
    for await (const leader of election.observe({ signal: stop.signal, everyMs: 2_000 })) seen.push(leader);
  })();
  await clock.advance(0);
  const term = await election.campaign();
  await clock.advance(20_000);
  assert.ok(asked >= 9 && asked <= 12, `asked ${asked} times in 20 s`);
  assert.deepEqual(
    seen.map((leader) => leader?.token),
    [undefined, term.token],
  );
  stop.abort();
  await observing;
  await locks.close();
});

test("observe: ends with the manager, and with a break, leaving no timer behind", async () => {
  const clock = new ManualClock();
  const locks = await connect(memory({ clock }));
  const election = locks.election("e");
  const { signal } = new AbortController();
  for await (const leader of election.observe({ signal })) {
    assert.equal(leader, null);
    break;
  }
  const iterator = election.observe({ signal })[Symbol.asyncIterator]();
  await iterator.next();
  const next = iterator.next();
  const refused = assert.rejects(next, { code: "CLOSED" });
  await clock.settle();
  await locks.close();
  await refused;
  assert.equal(clock.keptAliveBy, 0);
  assert.equal(clock.timers, 0);
});

test("values and arguments are checked", async () => {
  const locks = await connect("memory:");
  const election = locks.election("e");
  await assert.rejects(election.campaign({ value: "x".repeat(4_097) }), { code: "CONFIG" });
  await assert.rejects(election.campaign({ value: "\uD800" }), { code: "CONFIG" });
  await assert.rejects(election.campaign({ value: 3 as never }), TypeError);
  await assert.rejects(
    election.lead(() => 0, {} as never),
    TypeError,
  );
  await assert.rejects(election.lead(undefined as never, { signal: new AbortController().signal }), TypeError);
  await assert.rejects(
    async () => {
      for await (const _ of election.observe({ signal: new AbortController().signal, everyMs: 1 })) break;
    },
    { code: "CONFIG" },
  );
  const term = await election.campaign({ value: "x".repeat(4_096) });
  assert.equal((await election.leader())?.value?.length, 4_096);
  await term.release();
  assert.throws(() => locks.election("e", { graceMs: 29_000 }), { code: "CONFIG" });
  await locks.close();
});
