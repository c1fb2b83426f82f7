/** A grant that a failover has undone before its caller got it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineUnavailableError } from "../../src/engine/errors.ts";
import { LeaseEngine } from "../../src/engine/lease-engine.ts";
import type { Answer, Ask, Renewal, StoreEvents } from "../../src/engine/lease-store.ts";
import { MemorySpace } from "../../src/engines/memory/space.ts";
import { MemoryStore } from "../../src/engines/memory/store.ts";
import { connect, type HeldLock } from "../../src/index.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

/** Requests and renewals reach the replica, releases do not. */
class Pair extends MemoryStore {
  readonly #replica: MemoryStore;
  down = false;
  promoted = false;

  constructor(master: MemorySpace, replica: MemorySpace, clock: ManualClock) {
    super(master, clock);
    this.#replica = new MemoryStore(replica, clock);
  }

  override async open(events: StoreEvents): Promise<void> {
    await super.open(events);
    await this.#replica.open(events);
  }

  override async request(ask: Ask): Promise<Answer> {
    const answer = await this.#replica.request(ask);
    return this.promoted ? answer : super.request(ask);
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    if (this.down) throw new EngineUnavailableError("nobody answers");
    const answers = await this.#replica.renew(renewals);
    return this.promoted ? answers : super.renew(renewals);
  }

  override async withdraw(name: string, owner: string): Promise<void> {
    await this.#replica.withdraw(name, owner);
    await super.withdraw(name, owner);
  }
}

test("a waiter whose grant was lost before it was confirmed queues again, and is served", async () => {
  const clock = new ManualClock();
  const spaces = [new MemorySpace(), new MemorySpace()] as const;
  const ours = new Pair(...spaces, clock);
  const theirs = new Pair(...spaces, clock);
  const [locks, others] = [await connect(new LeaseEngine(ours, clock)), await connect(new LeaseEngine(theirs, clock))];
  const held = await others.acquire("report");
  let lock: HeldLock | undefined;
  const waiting = locks.acquire("report").then((granted) => (lock = granted));
  await clock.advance(0);

  ours.down = true; // its keep-alives are lost, so that the bell finds a lease that is nearly over
  await clock.advance(8_000);
  ours.down = false;
  ours.promoted = true; // the one who has taken over knows nothing of the grant
  await held.release();
  await clock.advance(60_000);

  assert.equal(lock?.isHeld(), true);
  await waiting;
});
