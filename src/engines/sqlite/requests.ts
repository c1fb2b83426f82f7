/** The rows of the queues: adding, renewing, ending and reading them. All methods work inside the transaction. */
import type { Ask, Renewal } from "../../engine/lease-store.ts";
import type { Wish } from "../../engine/queue.ts";
import { type Moment, type QueueFronts, ROUNDING_MS, type Row } from "./queue-front.ts";
import type { Statements } from "./statements.ts";
import type { Visitors } from "./visitors.ts";

/** What is to be told to the owner of a request once the transaction is committed. */
export interface Ring {
  readonly visitor: number;
  readonly owner: string;
  /** With this token it was granted; undefined: it has to look. */
  readonly token: bigint | undefined;
}

/** A text, which SQLite sorts before every blob: an empty blob is a null on Node 22. */
export const BEFORE_ALL_NAMES = "";

export type Victim = Pick<Row, "place" | "owner" | "visitor" | "ttlMs">;

interface OwnRequest {
  readonly place: number;
  held: boolean;
}

/** A row after its renewal. */
export interface Renewed extends Wish {
  readonly token: number | null;
}

export interface RequestEvents {
  ring(ring: Ring): void;
  /** One of our requests waits no more. */
  waitsNoMore(owner: string): void;
}

export class Requests {
  readonly #statements: Statements;
  readonly #visitors: Visitors;
  readonly #fronts: QueueFronts;
  readonly #events: RequestEvents;
  /** Where our requests stand. A hint: rows are always checked by owner. */
  readonly #own = new Map<string, OwnRequest>();

  constructor(statements: Statements, visitors: Visitors, fronts: QueueFronts, events: RequestEvents) {
    this.#statements = statements;
    this.#visitors = visitors;
    this.#fronts = fronts;
    this.#events = events;
  }

  /** As far as this connection knows. Asking the queue for an owner that is new would read all of it. */
  ownPlace(owner: string): number | undefined {
    return this.#own.get(owner)?.place;
  }

  placeOf(name: Buffer, owner: string): number | undefined {
    const known = this.#own.get(owner);
    if (known !== undefined) return known.place;
    const row = this.#statements.get("place-of").get(name, owner) as { place: number } | undefined;
    return row?.place;
  }

  isHeld(owner: string): boolean {
    return this.#own.get(owner)?.held === true;
  }

  noteHeld(owner: string): void {
    const own = this.#own.get(owner);
    if (own === undefined || own.held) return;
    own.held = true;
    this.#events.waitsNoMore(owner);
  }

  forget(owner: string): void {
    if (!this.#own.delete(owner)) return;
    this.#events.waitsNoMore(owner);
  }

  lastPlace(name: Buffer): number {
    const row = this.#statements.get("last-place").get(name) as { place: number } | undefined;
    return row?.place ?? 0;
  }

  insert(
    name: Buffer,
    place: number,
    ask: Ask,
    grant: { readonly token: number | null; readonly ttlMs: number; readonly holdEndsMs: number },
    moment: Moment,
  ): void {
    const ttlMs = Math.ceil(grant.ttlMs) + ROUNDING_MS;
    const limit = Math.min(ask.limit, Number.MAX_SAFE_INTEGER);
    this.#statements
      .get("insert-request")
      .run(
        name,
        place,
        ask.owner,
        this.#visitors.self,
        ask.mode,
        limit,
        grant.token,
        moment.nowMs + ttlMs,
        ttlMs,
        Math.ceil(ask.minHoldMs),
        Math.ceil(grant.holdEndsMs),
        moment.wallMs,
        ask.client.clientId,
        ask.client.host,
        ask.client.pid,
        ask.value ?? null,
      );
    this.#own.set(ask.owner, { place, held: grant.token !== null });
  }

  renew(name: Buffer, place: number, renewal: Renewal, { nowMs }: Moment): Renewed | undefined {
    const pendingMs = Math.ceil(renewal.pendingTtlMs) + ROUNDING_MS;
    const heldMs = Math.ceil(renewal.ttlMs) + ROUNDING_MS;
    return this.#statements
      .get("renew")
      .get(nowMs, pendingMs, heldMs, nowMs, pendingMs, heldMs, name, place, renewal.owner, nowMs) as
      Renewed | undefined;
  }

  depart(name: Buffer, place: number, owner: string, token: bigint | undefined, moment: Moment): void {
    const row = this.#statements.get("own-request").get(name, place, owner) as
      { token: number | null; endsMs: number; holdEndsMs: number } | undefined;
    // A release is of one hold: it never ends another one, nor a pending request.
    if (row !== undefined && token !== undefined && (row.token === null || BigInt(row.token) !== token)) return;
    this.forget(owner);
    if (row === undefined) return;
    if (token !== undefined && row.holdEndsMs > moment.nowMs) this.#statements.get("disown").run(name, place);
    else if (row.endsMs > moment.nowMs) this.#statements.get("delete-request").run(name, place);
    this.#fronts.settle(name, moment);
    this.checkBehind(name, place);
  }

  /** Who watched the one that stood at `place` has to pick another to watch. */
  checkBehind(name: Buffer, place: number): void {
    const next = this.#statements.get("next-behind").get(name, place) as
      { owner: string; visitor: number; token: number | null } | undefined;
    if (next?.token === null) this.#events.ring({ visitor: next.visitor, owner: next.owner, token: undefined });
  }

  /** Ends a held request against its owner's will; the owner's next renewal says why. */
  end(name: Buffer, victim: Victim, reason: "stolen" | "evicted", moment: Moment): void {
    this.#statements.get("delete-request").run(name, victim.place);
    if (victim.owner === "") return;
    this.#statements.get("prune-ended").run(moment.wallMs);
    this.#statements.get("add-ended").run(victim.owner, reason, moment.wallMs + victim.ttlMs);
    this.#events.ring({ visitor: victim.visitor, owner: victim.owner, token: undefined });
  }

  endedReason(owner: string): "stolen" | "evicted" | undefined {
    const row = this.#statements.get("ended-reason").get(owner) as { reason: "stolen" | "evicted" } | undefined;
    return row?.reason;
  }

  heldBy(name: Buffer, token: bigint): Victim | undefined {
    return this.#statements.get("held-by-token").get(name, token) as Victim | undefined;
  }

  /** Probes all who hold `name` or are next. True when somebody was dead. */
  suspectHolders(name: Buffer): boolean {
    const rows = this.#fronts.page(name, Number.MIN_SAFE_INTEGER);
    const alive = rows.filter((row) => row.gone !== 1);
    for (const row of alive) this.#visitors.suspect(row.visitor);
    this.#visitors.probeSuspects();
    return this.#fronts.page(name, Number.MIN_SAFE_INTEGER).filter((row) => row.gone !== 1).length < alive.length;
  }

  /** The whole queue in order, without those whose time is up. */
  queue(name: Buffer, moment: Moment): { row: Row; leftMs: number }[] {
    const queue: { row: Row; leftMs: number }[] = [];
    for (let after = Number.MIN_SAFE_INTEGER; ;) {
      const page = this.#fronts.page(name, after);
      for (const row of page) {
        const leftMs = this.#fronts.leftMs(name, row, moment);
        if (leftMs > 0) queue.push({ row, leftMs });
      }
      const last = page.at(-1);
      if (last === undefined) return queue;
      after = last.place;
    }
  }

  /** What the requests for `name` publish, by place. */
  published(name: Buffer): Map<number, string> {
    const rows = this.#statements.get("published").all(name) as unknown as { place: number; value: Uint8Array }[];
    return new Map(rows.map((row) => [row.place, Buffer.from(row.value).toString()]));
  }

  names(after: Uint8Array | "", from: Uint8Array | "", below: Uint8Array): Uint8Array[] {
    const rows = this.#statements.get("names").all(after, from, below) as unknown as { name: Uint8Array }[];
    return rows.map((row) => row.name);
  }
}
