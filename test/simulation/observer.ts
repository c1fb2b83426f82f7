/** Sees all of a simulated world: what holders believe is compared with the rule after every event, and a history is kept. */
import { heldPrefix, type Wish } from "../../src/engine/queue.ts";
import { type HeldLock, LockLostError } from "../../src/index.ts";
import { assemble } from "../../src/testing/history/assemble.ts";
import { draw } from "../../src/testing/history/drawing.ts";
import {
  checkHistory,
  historyArray,
  type HistoryEvent,
  HistoryRecorder,
  type Judged,
  type RecordedRequest,
} from "../../src/testing/history/index.ts";
import type { SimulatedProcess, World } from "../../src/testing/simulation/world.ts";

export interface Complaint {
  readonly text: string;
  /** A time line in text, where there is something to draw. */
  readonly drawing?: string | undefined;
}

/** A lock that somebody was handed. */
export interface Seen {
  readonly lock: HeldLock;
  readonly by: SimulatedProcess;
  readonly wish: Wish;
  readonly request: RecordedRequest;
  lastDeadlineMs: number;
}

interface Finding {
  readonly promise: Judged;
  readonly text: string;
  readonly atMs: number;
  readonly ids: readonly string[];
}

export class Observer {
  readonly events: HistoryEvent[] = [];
  grants = 0;
  readonly #world: World;
  readonly #recorders = new Map<string, HistoryRecorder>();
  readonly #held = new Map<string, Set<Seen>>();
  readonly #complaints: string[] = [];
  readonly #findings: Finding[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Whoever tells, tells it in the time of the world, whatever its own clock says. */
  recorder(name: string): HistoryRecorder {
    let recorder = this.#recorders.get(name);
    if (recorder === undefined) {
      const clock = new WorldClock(this.#world);
      this.#recorders.set(name, (recorder = new HistoryRecorder(name, historyArray(this.events), clock)));
    }
    return recorder;
  }

  complain(text: string): void {
    this.#complaints.push(`${text} at ${this.#world.nowMs.toFixed(1)} ms`);
  }

  granted(lock: HeldLock, wish: Wish, by: SimulatedProcess, request: RecordedRequest): Seen {
    this.grants++;
    const isHeld = lock.isHeld();
    // Between the grant and this line a process may be stopped, but no event of the world passes.
    if (!isHeld && !lock.signal.aborted)
      this.#find("S1", `${by.name} was handed ${lock.name} past its deadline (S5)`, [request]);
    if (lock.mode !== wish.mode) this.complain(`${by.name} asked for ${wish.mode}, got ${lock.mode}`);
    request.granted(lock);
    const seen: Seen = { lock, by, wish, request, lastDeadlineMs: this.#deadlineMs(lock) };
    const held = this.#held.get(lock.name);
    if (held === undefined) this.#held.set(lock.name, new Set([seen]));
    else held.add(seen);
    lock.signal.addEventListener("abort", () => {
      // The signal of a leader's term also aborts when it is to stop.
      const { reason } = lock.signal as { reason: unknown };
      if (reason instanceof LockLostError) request.lost(reason.reason);
    });
    return seen;
  }

  releasing(seen: Seen): void {
    this.#held.get(seen.lock.name)?.delete(seen);
    seen.request.releasing();
  }

  /** After every event: those who believe that they hold a name are such as the rule lets in together, in token order. */
  look(): void {
    for (const [name, all] of this.#held) {
      const holders: Seen[] = [];
      for (const seen of all) {
        if (seen.by.dead) all.delete(seen);
        else if (seen.lock.isHeld()) {
          holders.push(seen);
          this.#noteRenewal(seen);
        }
      }
      if (holders.length < 2) continue;
      holders.sort((left, right) => (left.lock.token < right.lock.token ? -1 : 1));
      const joined = heldPrefix(holders.map(({ wish }) => wish));
      const odd = holders[joined];
      if (odd === undefined) continue;
      const who = holders.map(({ by }) => by.name).join(", ");
      this.#find(
        "S1",
        `${who} hold ${name} together, against the rule`,
        holders.map(({ request }) => request),
      );
      all.delete(odd);
    }
  }

  /** All that was found, in words and pictures. `passesOnWithinMs`: see `HistoryOptions`. */
  verdict(passesOnWithinMs: number | undefined): Complaint[] {
    const report = checkHistory(this.events, { passesOnWithinMs, complete: true });
    const history = assemble(this.events);
    const found = this.#findings.map(({ promise, text, atMs, ids }): Complaint => {
      const operations = history.operations.filter(({ id }) => ids.includes(id));
      const violation = { promise, text, operations, fromMs: atMs, toMs: atMs };
      return { text: `${promise}: ${text} at ${atMs.toFixed(1)} ms`, drawing: draw(history, violation) };
    });
    const judged = report.violations.map((each): Complaint => ({
      text: `${each.promise}: ${each.text}`,
      drawing: report.draw(each),
    }));
    return [...found, ...judged, ...this.#complaints.map((text) => ({ text }))];
  }

  #find(promise: Judged, text: string, requests: readonly RecordedRequest[]): void {
    this.#findings.push({ promise, text, atMs: this.#world.nowMs, ids: requests.map(({ id }) => id) });
  }

  #noteRenewal(seen: Seen): void {
    const deadlineMs = this.#deadlineMs(seen.lock);
    if (deadlineMs < seen.lastDeadlineMs + 1) return;
    seen.lastDeadlineMs = deadlineMs;
    seen.request.look(seen.lock);
  }

  #deadlineMs(lock: HeldLock): number {
    return this.#world.nowMs + lock.remainingMs();
  }
}

/** The time of the world itself: no process has this clock. */
class WorldClock {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  monotonicMs(): number {
    return this.#world.nowMs;
  }

  wallMs(): number {
    return this.#world.nowMs;
  }

  after(): never {
    throw new Error("nobody waits by the time of the world");
  }

  stayAlive(): never {
    throw new Error("nobody lives by the time of the world");
  }

  random(): number {
    return this.#world.random();
  }

  randomBytes(): never {
    throw new Error("nobody draws identities here");
  }
}
