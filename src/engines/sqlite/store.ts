/** The lock file as a lease store: the atomic verbs, each in one write transaction. */
import type { Client, Queue, QueueEntry, Traits } from "../../engine/engine.ts";
import { EngineUnavailableError, type LossReason } from "../../engine/errors.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../engine/lease-store.ts";
import { heldPrefix, type Wish } from "../../engine/queue.ts";
import { type Front, type Moment, ROUNDING_MS, type Row } from "./queue-front.ts";
import { BEFORE_ALL_NAMES } from "./requests.ts";
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
  #events: StoreEvents | undefined;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  async open(events: StoreEvents): Promise<void> {
    this.#events = events;
    await this.#open(events);
  }

  #open(events: StoreEvents, closed: Promise<void> = Promise.resolve()): Promise<Session> {
    this.#opening ??= closed
      .then(() => Session.open(this.#options, events))
      .then(
        (session) => {
          this.#session = session;
          return session;
        },
        (error: unknown) => {
          this.#opening = undefined;
          throw error;
        },
      );
    return this.#opening;
  }

  /**
   * The file, or its log, was removed or replaced under us: what we hold in it excludes nobody any more. We go on with the file that
   * is there now; renewals find nothing in it, which ends our holds.
   */
  async #reopen(): Promise<Session> {
    const events = this.#events;
    if (events === undefined) throw new EngineUnavailableError("the lock file is not open");
    const stale = this.#session;
    this.#session = undefined;
    if (stale === undefined) return await this.#open(events);
    this.#opening = undefined;
    // First closed: two connections of one process share what SQLite knows of the log, and the old log is gone.
    return await this.#open(events, stale.close(true));
  }

  request(ask: Ask): Promise<Answer> {
    return this.#write((session, moment) => {
      const name = Buffer.from(ask.name);
      let answer = this.#request(session, name, ask, moment);
      // "Busy" has to be right: a process that died a moment ago, unheard, must not make it so.
      if (answer.state === "busy" && session.requests.suspectHolders(name))
        answer = this.#request(session, name, ask, moment);
      return answer;
    });
  }

  #request(session: Session, name: Buffer, ask: Ask, moment: Moment): Answer {
    const front = session.fronts.settle(name, moment);
    // An owner asks through one connection only.
    const known = session.requests.ownPlace(ask.owner);
    if (known !== undefined) return this.#renewed(session, name, known, ask, front, moment);
    if (ask.steal) {
      this.#endHeld(session, name, front, moment);
      return this.#insertHeld(session, name, (front.rows[0]?.place ?? 0) - 1, ask, moment);
    }
    if (front.held === front.rows.length && heldPrefix([...front.rows, ask], front.held) > front.held) {
      return this.#insertHeld(session, name, (front.rows.at(-1)?.place ?? 0) + 1, ask, moment);
    }
    if (!ask.wait) return { state: "busy" };
    const place = session.requests.lastPlace(name) + 1;
    session.requests.insert(name, place, ask, { token: null, ttlMs: ask.pendingTtlMs, holdEndsMs: 0 }, moment);
    return this.#pending(session, name, place, ask, ask, front, moment);
  }

  #insertHeld(session: Session, name: Buffer, place: number, ask: Ask, moment: Moment): Answer {
    const token = session.fronts.nextToken(moment);
    const holdEndsMs = ask.minHoldMs === 0 ? 0 : moment.nowMs + ask.minHoldMs + ROUNDING_MS;
    session.requests.insert(name, place, ask, { token, ttlMs: ask.ttlMs, holdEndsMs }, moment);
    return { state: "held", token: BigInt(token), ttlMs: ask.ttlMs };
  }

  #endHeld(session: Session, name: Buffer, front: Front, moment: Moment): void {
    for (const row of front.rows.slice(0, front.held)) session.requests.end(name, row, "stolen", moment);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    return this.#write((session, moment) => {
      const fronts = new Map<string, Front>();
      return renewals.map((each) => {
        const name = Buffer.from(each.name);
        const place = session.requests.placeOf(name, each.owner);
        if (place === undefined) return this.#gone(session, each.owner);
        if (session.requests.isHeld(each.owner)) {
          const answer = this.#renewed(session, name, place, each, undefined, moment);
          // A bell had said that it is held, and bells prove nothing.
          if (answer.state !== "pending") return answer;
        }
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
    const row = session.requests.renew(name, place, renewal, moment);
    if (row === undefined) return this.#gone(session, renewal.owner);
    if (row.token === null) return this.#pending(session, name, place, renewal, row, front, moment);
    session.requests.noteHeld(renewal.owner);
    return { state: "held", token: BigInt(row.token), ttlMs: renewal.ttlMs };
  }

  #gone(session: Session, owner: string): Answer {
    session.requests.forget(owner);
    const reason: LossReason = session.requests.endedReason(owner) ?? "expired";
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
    const recheckMs = session.predecessors.waitBehind(
      name,
      { owner: request.owner, place, mode: wish.mode, limit: wish.limit },
      front,
      moment,
    );
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
      const place = session.requests.placeOf(name, owner);
      if (place !== undefined) session.requests.depart(name, place, owner, token, moment);
    });
  }

  inspect(nameText: string): Promise<Queue> {
    return this.#write((session, moment) => {
      const name = Buffer.from(nameText);
      session.requests.suspectHolders(name);
      session.fronts.settle(name, moment);
      const values = session.requests.published(name);
      return session.requests.queue(name, moment).map(({ row, leftMs }) => entryOf(row, leftMs, values.get(row.place)));
    });
  }

  async *names(prefix: string): AsyncIterable<string> {
    const first = prefix === "" ? BEFORE_ALL_NAMES : Buffer.from(prefix);
    // No byte of UTF-8 is 0xff.
    const bound = Buffer.concat([Buffer.from(prefix), Buffer.from([0xff])]);
    let after: Uint8Array | "" = BEFORE_ALL_NAMES;
    for (;;) {
      const page = (await this.#current()).requests.names(after, first, bound);
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
      const victim = session.requests.heldBy(name, token);
      if (victim === undefined) return false;
      session.requests.end(name, victim, "evicted", moment);
      session.fronts.settle(name, moment);
      session.requests.checkBehind(name, victim.place);
      return true;
    });
  }

  async close(): Promise<void> {
    this.#events = undefined;
    this.#session = undefined;
    const session = await this.#opening?.catch(() => undefined);
    await session?.close();
  }

  #write<T>(work: (session: Session, moment: Moment) => T): Promise<T> {
    const session = this.#session;
    // Not awaited here: the usual case takes no extra turn.
    return session?.isCurrent() === true
      ? session.write(work)
      : this.#reopen().then((reopened) => reopened.write(work));
  }

  async #current(): Promise<Session> {
    const session = this.#session;
    return session?.isCurrent() === true ? session : await this.#reopen();
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
    remainingMs: Math.max(0, leftMs - ROUNDING_MS),
    value,
  };
}
