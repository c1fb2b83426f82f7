/**
 * The front of a name's queue: drops those whose time is up, lets in those whom the rule of `engine/queue.ts` lets in.
 * Looks at the held requests and the first pending one only; who stands behind them can wait.
 */
import { heldPrefix, type LockMode, type Wish } from "../../engine/queue.ts";
import { groupRuns } from "./guarded-group.ts";
import type { Statements } from "./statements.ts";
import type { Visitors } from "./visitors.ts";

/** A row of the queue, as the statement `queue-after` returns it. */
export interface Row extends Wish {
  readonly place: number;
  readonly owner: string;
  readonly visitor: number;
  readonly mode: LockMode;
  readonly limit: number;
  token: number | null;
  readonly endsMs: number;
  readonly ttlMs: number;
  readonly minHoldMs: number;
  readonly holdEndsMs: number;
  sinceWallMs: number;
  readonly renewals: number;
  readonly clientId: string;
  readonly host: string;
  readonly pid: number;
  /** Null when its visitor is unknown. */
  readonly boot: string | null;
  readonly gone: number | null;
}

/** One reading of both clocks, in whole milliseconds. */
export interface Moment {
  readonly nowMs: number;
  readonly wallMs: number;
}

export interface Front {
  /** Those who are held, in order; behind them the first pending one, if there is one. */
  readonly rows: readonly Row[];
  readonly held: number;
  /** In how many ms the first of the held ones may end by itself. */
  readonly endsInMs: number;
}

interface Sighting {
  readonly seenMs: number;
  readonly owner: string;
  readonly renewals: number;
  readonly token: number | null;
}

/** How many rows `queue-after` returns at a time. */
const PAGE_ROWS = 32;
const BEFORE_ALL_PLACES = Number.MIN_SAFE_INTEGER;
/** A guarded group ends without a sound. */
const GUARD_RECHECK_MS = 50;
/** Lease ends are rounded up to whole milliseconds. */
export const ROUNDING_MS = 1;
const MICROS_PER_MS = 1_000;

export class QueueFronts {
  readonly #statements: Statements;
  readonly #visitors: Visitors;
  readonly #pidSpace: string;
  /** Told of each grant, inside the transaction. */
  readonly #granted: (row: Row, token: number) => void;

  constructor(
    statements: Statements,
    visitors: Visitors,
    pidSpace: string,
    granted: (row: Row, token: number) => void,
  ) {
    this.#statements = statements;
    this.#visitors = visitors;
    this.#pidSpace = pidSpace;
    this.#granted = granted;
  }

  /** Brings the front of the queue up to date. Inside the transaction. */
  settle(name: Uint8Array, moment: Moment): Front {
    const live: Row[] = [];
    let held = 0;
    let endsInMs = Infinity;
    for (let after = BEFORE_ALL_PLACES; ;) {
      const page = this.page(name, after);
      for (const row of page) {
        const left = this.leftMs(name, row, moment);
        if (left <= 0) {
          this.#statements.get("delete-request").run(name, row.place);
          continue;
        }
        live.push(row);
        if (row.token === null) {
          if (heldPrefix(live, held) === held) return { rows: live, held, endsInMs };
          this.#grant(name, row, moment);
        }
        held = live.length;
        endsInMs = Math.min(endsInMs, left);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return { rows: live, held, endsInMs };
      after = last.place;
    }
  }

  page(name: Uint8Array, after: number): Row[] {
    return this.#statements.get("queue-after").all(name, after) as unknown as Row[];
  }

  /** The next token of the file: grows by one at least, and is never below the wall clock in µs. */
  nextToken(moment: Moment): number {
    const { token } = this.#statements.get("next-token").get(moment.wallMs * MICROS_PER_MS) as { token: number };
    if (!Number.isSafeInteger(token)) throw new Error("the fencing tokens of this lock file are used up");
    return token;
  }

  #grant(name: Uint8Array, row: Row, moment: Moment): void {
    const token = this.nextToken(moment);
    const holdEndsMs = row.minHoldMs === 0 ? 0 : moment.nowMs + row.minHoldMs + ROUNDING_MS;
    this.#statements.get("grant").run(token, holdEndsMs, moment.wallMs, name, row.place);
    row.token = token;
    row.sinceWallMs = moment.wallMs;
    this.#granted(row, token);
  }

  /** For how long at least the request stays where it is if nobody does anything; 0 or less: it is over. */
  leftMs(name: Uint8Array, row: Row, moment: Moment): number {
    if (!this.#isReadable(row, moment)) return this.#leftUnreadableMs(name, row, moment);
    const leaseMs = row.owner === "" ? 0 : row.endsMs - moment.nowMs;
    const holdMs = row.token === null ? 0 : row.holdEndsMs - moment.nowMs;
    const left = Math.max(row.gone === 1 ? 0 : leaseMs, holdMs);
    if (left > 0 || row.token === null || row.owner === "") return left;
    return this.#leftOfGuardedMs(row, leaseMs);
  }

  /** The lease is over or the process is dead, but the command that it ran may go on. */
  #leftOfGuardedMs(row: Row, leaseMs: number): number {
    const visitor = this.#visitors.get(row.visitor);
    if (visitor?.guardPid == null) return 0;
    // From another PID namespace the group cannot be seen: there only the lease counts.
    if (this.#pidSpace === "" || visitor.pidSpace !== this.#pidSpace) return leaseMs;
    const group = { pid: visitor.guardPid, startedAt: visitor.guardStarted ?? "", pidSpace: this.#pidSpace };
    return groupRuns(group) ? GUARD_RECHECK_MS : 0;
  }

  /** Whether the row's times are on our clock. A time too far ahead is on no clock of ours, whatever its boot says. */
  #isReadable(row: Row, { nowMs }: Moment): boolean {
    return (
      row.boot === this.#visitors.bootId &&
      (row.owner === "" || row.endsMs - nowMs <= row.ttlMs) &&
      row.holdEndsMs - nowMs <= row.minHoldMs + ROUNDING_MS
    );
  }

  /**
   * A request of another boot: our own machine before it was restarted, or another one that shares the file. Its clock
   * cannot be read, so it is over when it has not been renewed for one TTL on our own clock.
   */
  #leftUnreadableMs(name: Uint8Array, row: Row, moment: Moment): number {
    const { bootId } = this.#visitors;
    let seen = this.#statements.get("sighting").get(name, row.place, bootId) as Sighting | undefined;
    if (seen?.owner !== row.owner || seen.renewals !== row.renewals || seen.token !== row.token) {
      seen = { seenMs: moment.nowMs, owner: row.owner, renewals: row.renewals, token: row.token };
      this.#statements.get("see").run(name, row.place, bootId, seen.seenMs, seen.owner, seen.renewals, seen.token);
    }
    const observedMs = moment.nowMs - seen.seenMs;
    const leaseMs = row.owner === "" ? 0 : row.ttlMs - observedMs;
    // Nobody measured the time between two boots but the wall clock; should it be wrong, what we saw ourselves bounds it.
    const sinceGrantMs = Math.max(moment.wallMs - row.sinceWallMs, observedMs);
    const holdMs = row.token === null ? 0 : row.minHoldMs - sinceGrantMs;
    return Math.max(leaseMs, holdMs);
  }
}
