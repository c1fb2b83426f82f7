/** Valid histories by the thousand: the queue rule on a made-up clock, with processes that wait, pause and are killed. */
import { heldPrefix, type LockMode } from "../../../src/engine/queue.ts";
import type { HistoryEvent, Untold } from "../../../src/testing/history/event.ts";
import { Dice } from "../../faults/suite/dice.ts";

export const TTL_MS = 300;
/** How long a free place may wait in these histories, with everybody who may be dead in front. */
export const PATIENCE_MS = 2_000;

const NAMES = [
  { name: "mutex", modes: ["exclusive"], limit: null },
  { name: "readers", modes: ["exclusive", "shared", "shared"], limit: null },
  { name: "permits", modes: ["shared"], limit: 2 },
] as const;

interface Place {
  readonly id: string;
  readonly process: string;
  readonly mode: LockMode;
  readonly limit: number;
  held: boolean;
  /** On the engine's clock. */
  expiresMs: number;
  readonly granted: (token: number, untilMs: number) => void;
}

export class ValidWorld {
  readonly events: HistoryEvent[] = [];
  #nowMs = 1_000;
  readonly #dice: Dice;
  #token = 0;
  #count = 0;
  #guard = 0;
  readonly #agenda: { atMs: number; order: number; run: () => void }[] = [];
  readonly #queues = new Map<string, Place[]>();
  readonly #applied: string[] = [];
  readonly #endMs: number;

  constructor(seed: number, lifeMs = 3_000) {
    this.#dice = new Dice(seed);
    this.#endMs = 1_000 + lifeMs;
    for (let index = 0; index < 4; index++) this.#after(this.#dice.between(0, 50), () => this.#work(`client-${index}`));
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#nowMs = next.atMs;
      next.run();
    }
    for (const write of this.#applied) this.#tell("judge", { kind: "applied", resource: "register", write });
  }

  #work(process: string): void {
    if (this.#nowMs > this.#endMs) return;
    const { name, modes, limit } = this.#dice.pick(NAMES);
    const mode = modes[Math.floor(this.#dice.next() * modes.length)] ?? "exclusive";
    const id = `${process}/${++this.#count}`;
    this.#tell(process, { kind: "requested", id, name, mode, limit: mode === "exclusive" ? 1 : limit });
    const again = (): void => this.#after(this.#dice.between(1, 40), () => this.#work(process));
    this.#after(this.#dice.between(0.1, 3), () => {
      const place: Place = {
        id,
        process,
        mode,
        limit: mode === "exclusive" ? 1 : (limit ?? Infinity),
        held: false,
        expiresMs: Infinity,
        granted: (token, untilMs) =>
          this.#after(this.#dice.between(0.1, 3), () => {
            this.#tell(process, { kind: "granted", id, token: String(token), untilMs });
            this.#hold(name, place, token, untilMs, again);
          }),
      };
      this.#queue(name).push(place);
      this.#settle(name);
      if (!place.held) this.#after(0.1, () => this.#tell("judge", { kind: "queued", id }));
    });
  }

  #hold(name: string, place: Place, token: number, untilMs: number, again: () => void): void {
    const { process, id, mode } = place;
    const dice = this.#dice.next();
    if (mode === "exclusive") this.#write(process, id, token);
    if (dice < 0.05) this.#kill(name, place);
    else if (dice < 0.15) {
      // Paused past its lease: a late write, a loss, a release that harms nobody.
      this.#tell("judge", { kind: "stopped", victim: process });
      this.#after(TTL_MS * 2, () => {
        this.#tell("judge", { kind: "resumed", victim: process });
        if (mode === "exclusive") this.#write(process, id, token);
        this.#tell(process, { kind: "lost", id, why: "expired" });
        this.#release(name, place, again);
      });
    } else {
      if (dice < 0.5) {
        place.expiresMs = Math.max(place.expiresMs, this.#nowMs + TTL_MS);
        this.#tell(process, { kind: "held", id, untilMs: Math.max(untilMs, this.#nowMs + TTL_MS - 10) });
      }
      this.#after(this.#dice.between(1, 60), () => this.#release(name, place, again));
    }
  }

  #kill(name: string, { process }: Place): void {
    this.#tell("judge", { kind: "killed", victim: process });
    this.#after(TTL_MS + 1, () => this.#settle(name));
    const [base, life = "0"] = process.split(".");
    this.#after(20, () => this.#work(`${base}.${Number(life) + 1}`));
  }

  #release(name: string, place: Place, again: () => void): void {
    const { process, id } = place;
    this.#tell(process, { kind: "releasing", id });
    this.#after(this.#dice.between(0.1, 3), () => {
      this.#remove(name, place);
      this.#settle(name);
      this.#after(this.#dice.between(0.1, 3), () => {
        this.#tell(process, { kind: "released", id });
        again();
      });
    });
  }

  #write(process: string, id: string, token: number): void {
    const write = `${id}:${++this.#count}`;
    this.#tell(process, { kind: "writing", id, write, resource: "register" });
    const accepted = token >= this.#guard;
    if (accepted) {
      this.#guard = token;
      this.#applied.push(write);
    }
    this.#tell(process, { kind: "written", write, accepted });
  }

  /** Removes what has expired and applies the rule. */
  #settle(name: string): void {
    const queue = this.#queue(name);
    const over = queue.filter((place) => place.held && place.expiresMs <= this.#nowMs);
    for (const place of over) this.#remove(name, place);
    const length = heldPrefix(queue, queue.filter((each) => each.held).length);
    for (const place of queue.slice(0, length)) {
      if (place.held) continue;
      place.held = true;
      place.expiresMs = this.#nowMs + TTL_MS;
      this.#after(TTL_MS + 1, () => this.#settle(name));
      place.granted(++this.#token, place.expiresMs - 10);
    }
  }

  #remove(name: string, place: Place): void {
    const queue = this.#queue(name);
    const index = queue.indexOf(place);
    if (index >= 0) queue.splice(index, 1);
  }

  #queue(name: string): Place[] {
    let queue = this.#queues.get(name);
    if (queue === undefined) this.#queues.set(name, (queue = []));
    return queue;
  }

  #tell(process: string, event: Untold<HistoryEvent>): void {
    this.events.push({ atMs: this.#nowMs, process, ...event });
  }

  #after(delayMs: number, run: () => void): void {
    this.#agenda.push({ atMs: this.#nowMs + delayMs, order: this.#count++, run });
  }

  #next(): { atMs: number; run: () => void } | undefined {
    let best: number | undefined;
    for (const [index, { atMs, order }] of this.#agenda.entries()) {
      const other = best === undefined ? undefined : this.#agenda[best];
      if (other === undefined || atMs < other.atMs || (atMs === other.atMs && order < other.order)) best = index;
    }
    return best === undefined ? undefined : this.#agenda.splice(best, 1)[0];
  }
}
