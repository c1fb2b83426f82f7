/** L1 and L2: crashed users are got over, and a lost wake-up costs time only. */
import assert from "node:assert/strict";
import type { CaseDefinition } from "../case.ts";
import { eventually, nowMs, pause, stillPending, within } from "../expect.ts";
import type { HeldLock } from "../../index.ts";
import { AdjustableClock } from "../pausable-clock.ts";
import { refusesLimits } from "./semaphore.ts";
import { refusesMinHold, refusesShared } from "./refusals.ts";

/** How many commands one waiter may cost in a while, beside what the case itself sends. */
const FEW_COMMANDS = 15;

export const LIVENESS: readonly CaseDefinition[] = [
  {
    id: "L1/killed-holder",
    title: "the lock of a killed holder passes to the waiter within its lease, and on from there",
    incidents: [16],
    needs: { peers: "sharing" },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const peer = await stage.peer();
      await peer.acquire("lock", stage.name);
      const first = left.acquire(stage.name);
      await stage.pending(left, 1);
      const second = right.acquire(stage.name);
      await stage.pending(left, 2);
      await stillPending(stage.ttlMs / 10, "waiting behind a live holder", first);
      await peer.kill();
      const killedMs = nowMs();
      const one = await within(stage.takeoverMs, "taking over from a killed holder", Promise.race([first, second]));
      assert.ok(nowMs() - killedMs <= stage.takeoverMs);
      await one.release();
      const [other] = await within(stage.hangMs, "the next waiter", Promise.all([second, first]));
      await other.release();
    },
  },
  {
    id: "L1/killed-reader",
    title: "the shared lock of a killed reader passes on within its lease",
    incidents: [19],
    needs: { peers: "sharing", traits: ["shared"] },
    otherwise: refusesShared,
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      await peer.acquire("lock", stage.name, { mode: "shared" });
      const reader = await locks.acquire(stage.name, { mode: "shared", ttlMs: stage.steadyTtlMs });
      const writing = locks.acquire(stage.name);
      await stage.pending(locks, 1);
      await peer.kill();
      // The living reader renews its own hold, and not the dead one's.
      await eventually(stage.takeoverMs, "the killed reader is gone", async () => {
        return (await stage.queue(locks)).held.length === 1;
      });
      assert.ok(reader.isHeld());
      await reader.release();
      const writer = await within(stage.takeoverMs, "taking over from a killed reader", writing);
      await writer.release();
    },
  },
  {
    id: "L1/killed-permits",
    title: "the permits of killed holders come back, and none too many",
    needs: { peers: "sharing", traits: ["limits"] },
    otherwise: refusesLimits,
    body: async (stage) => {
      const locks = await stage.connect();
      const semaphore = locks.semaphore(stage.name, { permits: 2 });
      const peers = await Promise.all([stage.peer(), stage.peer()]);
      for (const peer of peers) await peer.acquire("permit", stage.name, { permits: 2 });
      assert.equal(await semaphore.tryAcquire(), null);
      const waiting: Promise<HeldLock>[] = [];
      for (let each = 0; each < 3; each++) {
        waiting.push(semaphore.acquire());
        await stage.pending(locks, each + 1);
      }
      await Promise.all(peers.map((peer) => peer.kill()));
      const [last] = waiting.slice(-1);
      assert.ok(last);
      const held = await within(stage.takeoverMs, "both permits", Promise.all(waiting.slice(0, 2)));
      await stillPending(100, "a third holder of two permits", last);
      await held[0]?.release();
      held.push(await within(stage.lateMs, "the third", last));
      await Promise.all(held.map((each) => each.release()));
    },
  },
  {
    id: "L1/killed-waiter",
    title: "a killed waiter holds up those behind it for its lease at most",
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      const holder = await locks.acquire(stage.name);
      const dead = peer.acquire("lock", stage.name).catch(() => {});
      await stage.pending(locks, 1);
      const behind = locks.acquire(stage.name);
      await stage.pending(locks, 2);
      await peer.kill();
      await holder.release();
      const lock = await within(stage.takeoverMs, "getting past a killed waiter", behind);
      await lock.release();
      void dead;
    },
  },
  {
    id: "L1/killed-holder-with-a-minimum-hold",
    title: "the lock of a killed holder with a minimum hold passes on when that ends, not before",
    incidents: [64],
    needs: { peers: "sharing", traits: ["minHold"] },
    otherwise: refusesMinHold,
    body: async (stage) => {
      const locks = await stage.connect();
      const peer = await stage.peer();
      const minHoldMs = stage.ttlMs * 2;
      const startMs = nowMs();
      await peer.acquire("lock", stage.name, { minHoldMs });
      await peer.kill();
      const next = await within(minHoldMs + stage.takeoverMs, "taking over", locks.acquire(stage.name));
      assert.ok(nowMs() - startMs >= minHoldMs * 0.98, "the minimum hold was cut short");
      await next.release();
    },
  },
  {
    id: "L1/many-crashes",
    title: "holders and waiters die one after the other, and everybody else is served",
    needs: { peers: "sharing" },
    body: async (stage) => {
      const locks = await stage.connect();
      const peers = await Promise.all([stage.peer(), stage.peer(), stage.peer()]);
      const waiting = peers.map((peer) => peer.acquire("lock", stage.name).catch(() => {}));
      await Promise.race(waiting);
      const requests = Array.from({ length: 4 }, () => locks.request(stage.name, () => pause(1)));
      await pause(50);
      for (const peer of peers) await peer.kill();
      await within(3 * stage.takeoverMs, "everybody else", Promise.all(requests));
      await stage.gone(locks);
    },
  },
  {
    id: "L1/drifted-clocks",
    title: "clients whose wall clocks are hours apart share one queue: nobody's lease ends early or late",
    incidents: [17],
    needs: { hooks: ["connectWithClock"] },
    body: async (stage) => {
      const ttlMs = stage.steadyTtlMs;
      const clocks = [5, 0, -5].map((hours) => new AdjustableClock(hours * 3_600_000));
      const managers = await Promise.all(clocks.map((clock) => stage.connectWithClock(clock, { ttlMs })));
      const [ahead, right, behind] = managers;
      assert.ok(ahead && right && behind);
      const holder = await ahead.acquire(stage.name);
      const waiting = [right.acquire(stage.name)];
      await stage.pending(right, 1);
      waiting.push(behind.acquire(stage.name));
      await stage.pending(right, 2);
      await pause(1.2 * ttlMs);
      assert.ok(holder.isHeld());
      for (const locks of managers) {
        const { held, pending } = await stage.queue(locks);
        assert.deepEqual([held.length, pending.length], [1, 2]);
        const left = held[0]?.remainingMs;
        if (stage.traits.lease === "lease")
          assert.ok(left != null && left > 0 && left <= ttlMs + 1_000, `${left} ms left`);
      }
      await holder.release();
      const first = await within(stage.hangMs, "the first waiter", Promise.race(waiting));
      assert.ok(first.isHeld() && first.token > holder.token);
      await first.release();
      const both = await within(stage.hangMs, "the other waiter", Promise.all(waiting));
      for (const lock of both) await lock.release();
    },
  },
  {
    id: "L2/lost-bells",
    title: "a lost wake-up costs a keep-alive period at most, not a hang",
    incidents: [10],
    needs: { hooks: ["dropBells"] },
    body: async (stage) => {
      const [left, right] = await Promise.all([stage.connect(), stage.connect()]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      const restore = await stage.dropBells();
      await holder.release();
      const lock = await within(stage.ttlMs + stage.lateMs, "being granted without a wake-up", waiting);
      await restore();
      await lock.release();
    },
  },
  {
    id: "L2/no-polling",
    title: "a waiter costs its keep-alives, not a poll every moment",
    incidents: [51],
    needs: { hooks: ["countCommands"] },
    body: async (stage) => {
      const ttlMs = Math.max(stage.ttlMs, 3_000);
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      const before = await stage.hook("countCommands")();
      await stillPending(ttlMs / 2, "waiting", waiting);
      const commands = (await stage.hook("countCommands")()) - before;
      assert.ok(commands <= FEW_COMMANDS, `${commands} commands while one waited for ${ttlMs / 2} ms`);
      await holder.release();
      await (await within(stage.hangMs, "the waiter", waiting)).release();
    },
  },
  {
    id: "L2/prompt",
    title: "a release wakes the next waiter long before any keep-alive is due",
    needs: {},
    body: async (stage) => {
      // Session engines set the lease themselves; their waiters need no keep-alive to be woken either.
      const ttlMs = 30_000;
      const [left, right] = await Promise.all([stage.connect({ ttlMs }), stage.connect({ ttlMs })]);
      const holder = await left.acquire(stage.name);
      const waiting = right.acquire(stage.name);
      await stage.pending(left, 1);
      await holder.release();
      const lock = await within(stage.lateMs, "being woken", waiting);
      await lock.release();
    },
  },
];
