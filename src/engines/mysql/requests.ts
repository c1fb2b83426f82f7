/** The requests of this process that stand in some queue: the desk each came through, its bell, and who has to be told what. */
import type { Answer, Ask, StoreEvents } from "../../engine/lease-store.ts";
import type { HeldBells } from "./bells.ts";
import type { Row } from "./client.ts";
import type { Desk } from "./desk.ts";
import { type Packet, together } from "./packet.ts";
import { millis, text, tokenOf } from "./rows.ts";
import type { Watch } from "./watch.ts";

export interface Request {
  readonly desk: Desk;
  /** The bells of the session that holds `bell`. */
  bells: HeldBells | undefined;
  bell: string | null;
  /** Known to stand in a request row; otherwise it may stand inside the name's row. */
  inRow: boolean;
  /** It may have a minimum hold. */
  readonly minHold: boolean;
  /** It stands alone at the head of its queue when it is held. */
  readonly exclusive: boolean;
}

/** So many names are remembered as contended. */
const MOST_CONTENDED = 1_000;

export class Requests {
  readonly #requests = new Map<string, Request>();
  /** Names whose queue others stood in when we last left it: the uncontended way would likely be a wasted round trip. */
  readonly #contended = new Set<string>();
  readonly #events: StoreEvents;
  readonly #watch: Watch;

  constructor(events: StoreEvents, watch: Watch) {
    this.#events = events;
    this.#watch = watch;
  }

  get(owner: string): Request | undefined {
    return this.#requests.get(owner);
  }

  add(ask: Ask, desk: Desk): Request {
    const kind = { minHold: ask.minHoldMs > 0, exclusive: ask.mode === "exclusive" };
    const request: Request = { desk, bells: undefined, bell: null, inRow: false, ...kind };
    this.#requests.set(ask.owner, request);
    return request;
  }

  isContended(name: string): boolean {
    return this.#contended.has(name);
  }

  /** Remembers how we left the queue of `name`. */
  left(name: string, othersRemain: boolean): void {
    this.#contended.delete(name);
    if (!othersRemain) return;
    this.#contended.add(name);
    if (this.#contended.size > MOST_CONTENDED)
      for (const oldest of this.#contended) return void this.#contended.delete(oldest);
  }

  /** The request is over and nobody can be waiting for it: its bell may serve another one. */
  forget(owner: string): void {
    const request = this.#remove(owner);
    if (request !== undefined && request.bell !== null) request.bells?.putBack(request.bell);
  }

  /** The request is over and its bell was rung, or is left to its session. */
  letGo(owner: string): void {
    const request = this.#remove(owner);
    if (request === undefined || request.bell === null) return;
    request.bells?.rung(request.bell);
    this.#watch.rang(request.bell);
  }

  /** How a request in a row (of answer.sql) stands; begins or ends watching for it. */
  answer(owner: string, row: Row, ttl: { readonly ttlMs: number; readonly pendingTtlMs: number }): Answer {
    const request = this.#requests.get(owner);
    if (request !== undefined) request.inRow = true;
    const token = tokenOf(row);
    if (token !== null) {
      this.#watch.end(owner);
      return { state: "held", token, ttlMs: ttl.ttlMs };
    }
    if (request !== undefined) this.#watch.begin(owner, text(row["bell"]));
    const recheck = row["recheck_us"];
    return {
      state: "pending",
      ttlMs: ttl.pendingTtlMs,
      recheckMs: recheck === null ? null : Math.ceil(millis(recheck)),
    };
  }

  /** Tells requests of this process that a transaction of ours granted them; those of others hear the bell. */
  spread(granted: readonly Row[], except?: string): void {
    for (const row of granted) {
      const owner = text(row["owner"]);
      const token = tokenOf(row);
      if (owner === except || token === null || !this.#requests.has(owner)) continue;
      this.#watch.end(owner);
      this.#events.granted(owner, token);
    }
  }

  /** Tells the owners among these that are of this process to ask how they stand. */
  check(rows: readonly Row[]): void {
    for (const row of rows) {
      const owner = text(row["owner"]);
      if (this.#requests.has(owner)) this.#events.check(owner);
    }
  }

  #remove(owner: string): Request | undefined {
    const request = this.#requests.get(owner);
    this.#requests.delete(owner);
    this.#watch.end(owner);
    return request;
  }
}

/** Builds a packet with the request's bell, taken from the session that is about to run it. */
export function withBell(request: Request, bells: HeldBells, build: (bell: string | null) => Packet): Packet {
  if (request.bells === bells) return build(request.bell);
  const taken = bells.take();
  request.bells = taken === undefined ? undefined : bells;
  request.bell = taken?.bell ?? null;
  const asking = build(request.bell);
  return taken?.first === undefined ? asking : together(taken.first, asking);
}

/** Whether the session that is about to run a packet holds the request's bell. */
export function canRing(request: Request | undefined, bells: HeldBells): boolean {
  return request !== undefined && request.bell !== null && request.bells === bells;
}
