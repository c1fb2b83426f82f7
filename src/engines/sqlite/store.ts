/** The lock file as a lease store: the atomic verbs, each in one write transaction. */
import { type Client, type Queue, type QueueEntry, type Traits } from "../../engine/engine.ts";
import { EngineUnavailableError, type LossReason } from "../../engine/errors.ts";
import { type Answer, type Ask, type LeaseStore, type Renewal, type StoreEvents } from "../../engine/lease-store.ts";
import { heldPrefix, type Wish } from "../../engine/queue.ts";
import { type Front, type Moment, ROUNDING_MS, type Row } from "./queue-front.ts";
import { Session, type StoreOptions } from "./session.ts";

const TRAITS: Traits = {
  engine: "sqlite",
  fair: true,
  shared: true,
  limits: true,
  steal: true,
  minHold: true,
  lease: "lease",
  bells: "push",
  scope: "machine",
  survivesRestart: true,
  survivesFailover: false,
  survivesClockJump: true,
};

export class SqliteStore implements LeaseStore {
  readonly traits: Traits = TRAITS;
  readonly #options: StoreOptions;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  async open(events: StoreEvents): Promise<void> {
    this.#opening ??= Session.open(this.#options, events);
    this.#session = await this.#opening;
  }

  request(ask: Ask): Promise<Answer> {
    return this.#write((session, moment) => {
      const name = Buffer.from(ask.name);
      let answer = this.#request(session, name, ask, moment);
      // "Busy" has to be right: a process that died a moment ago, unheard, must not make it so.
      if (answer.state === "busy" && session.suspectHolders(name)) answer = this.#request(session, name, ask, moment);
      return answer;
    });
  }

  #request(session: Session, name: Buffer, ask: Ask, moment: Moment): Answer {
    const front = session.fronts.settle(name, moment);
    if (front.rows.length > 0) {
      const place = session.placeOf(name, ask.owner);
      if (place !== undefined) return this.#renewed(session, name, place, ask, front, moment);
    }
    if (ask.steal) {
      this.#endHeld(session, name, front, moment);
      return this.#insertHeld(session, name, (front.rows[0]?.place ?? 0) - 1, ask, moment);
    }
    if (front.held === front.rows.length && heldPrefix([...front.rows, ask], front.held) > front.held) {
      return this.#insertHeld(session, name, (front.rows.at(-1)?.place ?? 0) + 1, ask, moment);
    }
    if (!ask.wait) return { state: "busy" };
    const place = session.lastPlace(name) + 1;
    session.insert(name, place, ask, { token: null, ttlMs: ask.pendingTtlMs, holdEndsMs: 0 }, moment);
    return this.#pending(session, name, place, ask, ask, front, moment);
  }

  #insertHeld(session: Session, name: Buffer, place: number, ask: Ask, moment: Moment): Answer {
    const token = session.fronts.nextToken(moment);
    const holdEndsMs = ask.minHoldMs === 0 ? 0 : moment.nowMs + ask.minHoldMs + ROUNDING_MS;
    session.insert(name, place, ask, { token, ttlMs: ask.ttlMs, holdEndsMs }, moment);
    return { state: "held", token: BigInt(token), ttlMs: ask.ttlMs };
  }

  #endHeld(session: Session, name: Buffer, front: Front, moment: Moment): void {
    for (const row of front.rows.slice(0, front.held)) session.end(name, row, "stolen", moment);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.#write((session, moment) => {
      const fronts = new Map<string, Front>();
      return renewals.map((each) => {
        const name = Buffer.from(each.name);
        const place = session.placeOf(name, each.owner);
        if (place === undefined) return this.#gone(session, each.owner);
        if (session.isHeld(each.owner)) return this.#renewed(session, name, place, each, undefined, moment);
        const front = fronts.get(each.name) ?? session.fronts.settle(name, moment);
        fronts.set(each.name, front);
        return this.#renewed(session, name, place, each, front, moment);
      });
    });
  }

  /** Renews what stands at `place`, and answers how it stands. `front`: for those who may be pending. */
  #renewed(
    session: Session,
    name: Buffer,
    place: number,
    renewal: Renewal,
    front: Front | undefined,
    moment: Moment,
  ): Answer {
    const row = session.renew(name, place, renewal, moment);
    if (row === undefined) return this.#gone(session, renewal.owner);
    if (row.token === null) return this.#pending(session, name, place, renewal, row, front, moment);
    session.noteHeld(renewal.owner);
    return { state: "held", token: BigInt(row.token), ttlMs: renewal.ttlMs };
  }

  #gone(session: Session, owner: string): Answer {
    session.forget(owner);
    const reason: LossReason = session.endedReason(owner) ?? "expired";
    return { state: "gone", reason };
  }

  #pending(
    session: Session,
    name: Buffer,
    place: number,
    request: Renewal,
    wish: Wish,
    front: Front | undefined,
    moment: Moment,
  ): Answer {
    const recheckMs = session.waitBehind(name, place, request.owner, wish, front, moment);
    return { state: "pending", ttlMs: request.pendingTtlMs, recheckMs };
  }

  release(name: string, owner: string, token: bigint): Promise<void> {
    return this.#leave(name, owner, token);
  }

  withdraw(name: string, owner: string): Promise<void> {
    return this.#leave(name, owner, undefined);
  }

  /** The owner goes. `token`: a release, which must be of this very hold and keeps its minimum hold. */
  #leave(nameText: string, owner: string, token: bigint | undefined): Promise<void> {
    return this.#write((session, moment) => {
      const name = Buffer.from(nameText);
      const place = session.placeOf(name, owner);
      if (place !== undefined) session.depart(name, place, owner, token, moment);
    });
  }

  inspect(nameText: string): Promise<Queue> {
    return this.#write((session, moment) => {
      const name = Buffer.from(nameText);
      session.suspectHolders(name);
      session.fronts.settle(name, moment);
      const values = session.published(name);
      return session.queue(name, moment).map(({ row, leftMs }) => entryOf(row, leftMs, values.get(row.place)));
    });
  }

  async *names(prefix: string): AsyncIterable<string> {
    const first = Buffer.from(prefix);
    // No byte of UTF-8 is 0xff.
    const bound = Buffer.concat([first, Buffer.from([0xff])]);
    // The name that equals the prefix is the first one above it without its last byte.
    let after: Uint8Array = Buffer.alloc(0);
    for (;;) {
      const page = this.#opened().names(after, first, bound);
      for (const name of page) yield Buffer.from(name).toString();
      const last = page.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  evict(nameText: string, token: bigint): Promise<boolean> {
    return this.#write((session, moment) => {
      const name = Buffer.from(nameText);
      session.fronts.settle(name, moment);
      const victim = session.heldBy(name, token);
      if (victim === undefined) return false;
      session.end(name, victim, "evicted", moment);
      session.fronts.settle(name, moment);
      session.checkBehind(name, victim.place);
      return true;
    });
  }

  async close(): Promise<void> {
    const session = await this.#opening?.catch(() => undefined);
    this.#session = undefined;
    await session?.close();
  }

  #write<T>(work: (session: Session, moment: Moment) => T): Promise<T> {
    try {
      return this.#opened().write(work);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #opened(): Session {
    if (this.#session === undefined) throw new EngineUnavailableError("the lock file is not open");
    return this.#session;
  }
}

function entryOf(row: Row, leftMs: number, value: string | undefined): QueueEntry {
  const client: Client = { clientId: row.clientId, host: row.host, pid: row.pid };
  return {
    mode: row.mode,
    limit: row.limit === Number.MAX_SAFE_INTEGER ? Infinity : row.limit,
    token: row.token === null ? null : BigInt(row.token),
    client,
    sinceMs: row.sinceWallMs,
    remainingMs: leftMs,
    value,
  };
}
