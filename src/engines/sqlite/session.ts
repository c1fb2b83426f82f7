/** One open connection to the lock file: its transactions, its presence, its bells, and the rows that are its own. */
import { type DatabaseSync } from "node:sqlite";
import { type Clock } from "../../engine/clock.ts";
import { type Ask, type Renewal, type StoreEvents } from "../../engine/lease-store.ts";
import { watched, type Wish } from "../../engine/queue.ts";
import { type Address, Bells } from "./bells.ts";
import { openLockFile } from "./database.ts";
import { type GuardedGroup } from "./guarded-group.ts";
import { bootId, pidSpace, randomId } from "./machine.ts";
import { type OwnPresence, PresenceFolder } from "./presence.ts";
import { type Front, type Moment, QueueFronts, ROUNDING_MS, type Row } from "./queue-front.ts";
import { RightOfWay } from "./right-of-way.ts";
import { engineError } from "./sqlite-errors.ts";
import { Statements } from "./statements.ts";
import { Transactions } from "./transactions.ts";
import { newVisitorId, Visitors } from "./visitors.ts";

/** When a process dies its descriptors close in no order that we know: its lock may outlive its socket by a moment. */
const LOOK_AGAIN_MS = [0, 5, 30, 150];
/** A waiter whose predecessor cannot be heard looks after it by itself. */
const UNHEARD_RECHECK_MS = 250;
/** How many of those ahead a waiter looks at. */
const AHEAD_OF_EXCLUSIVE = 8;
const AHEAD_OF_SHARED = 64;
const SWEPT_NAMES = 32;

export interface StoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly guarded?: GuardedGroup | undefined;
  /** Which boot this is; for tests. */
  readonly bootId?: string | undefined;
}

interface OwnRequest {
  readonly place: number;
  held: boolean;
}

interface Standing extends Wish {
  readonly visitor: number;
  readonly endsMs: number;
  readonly ttlMs: number;
  readonly boot: string | null;
}

/** A row after its renewal. */
interface Renewed extends Wish {
  readonly token: number | null;
}

interface Ring {
  readonly visitor: number;
  readonly owner: string;
  /** Undefined: only to look. */
  readonly token: bigint | undefined;
}

export class Session {
  readonly visitors: Visitors;
  readonly fronts: QueueFronts;
  readonly #clock: Clock;
  readonly #events: StoreEvents;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #transactions: Transactions;
  readonly #bells: Bells;
  /** Where our requests stand. A hint: rows are always checked by owner. */
  readonly #own = new Map<string, OwnRequest>();
  #presence: OwnPresence | undefined;
  #rings: Ring[] = [];
  #closing: Promise<void> | undefined;

  static async open(options: StoreOptions, events: StoreEvents): Promise<Session> {
    const { database, path } = await openLockFile(options.path, options.clock);
    const session = new Session(database, path, options, events);
    try {
      await session.#enter(new PresenceFolder(path), options);
      return session;
    } catch (error) {
      session.#bells.close();
      session.#presence?.leave();
      database.close();
      throw engineError(error, path);
    }
  }

  private constructor(database: DatabaseSync, path: string, options: StoreOptions, events: StoreEvents) {
    const { clock } = options;
    const folder = new PresenceFolder(path);
    this.#clock = clock;
    this.#events = events;
    this.#database = database;
    this.#statements = new Statements(database);
    const self = newVisitorId(clock);
    this.visitors = new Visitors(self, options.bootId ?? bootId(clock), clock, folder, this.#statements);
    this.fronts = new QueueFronts(this.#statements, this.visitors, pidSpace(), (row, token) => {
      this.#rings.push({ visitor: row.visitor, owner: row.owner, token: BigInt(token) });
    });
    this.#transactions = new Transactions(
      clock,
      path,
      this.#statements,
      new RightOfWay(clock, folder.path),
      () => this.#ring(),
      () => {
        this.#rings = [];
      },
    );
    this.#bells = new Bells(clock, folder.path, self, {
      granted: (owner, token) => this.#wasGranted(owner, token),
      check: (owner) => events.check(owner),
      ended: (visitor) => this.#lookAfter(visitor),
    });
  }

  async #enter(folder: PresenceFolder, options: StoreOptions): Promise<void> {
    folder.make();
    const id = randomId(options.clock);
    // Registered before it exists: others sweep away sockets that nobody has registered.
    const planned = this.#bells.nameFor(id);
    await this.#transactions.run(() => {
      this.#presence = folder.enter(id);
      this.visitors.enter(this.#presence, planned, options.guarded);
    });
    const bell = await this.#bells.listen(id);
    await this.write((_, moment) => {
      if (bell !== planned) this.visitors.moveBell(bell);
      this.visitors.sweep();
      this.#sweepNames(moment);
    });
  }

  /** One write transaction, with one reading of the clocks after it has the lock. */
  write<T>(work: (session: Session, moment: Moment) => T): Promise<T> {
    return this.#transactions.run(() => {
      this.visitors.probeSuspects();
      const moment = { nowMs: Math.floor(this.#clock.monotonicMs()), wallMs: Math.floor(this.#clock.wallMs()) };
      return work(this, moment);
    });
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
    this.#bells.watch(owner, []);
  }

  forget(owner: string): void {
    if (!this.#own.delete(owner)) return;
    this.#bells.watch(owner, []);
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
        this.visitors.self,
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

  /** Watches those ahead, and tells in how many ms to look again. */
  waitBehind(
    name: Buffer,
    place: number,
    owner: string,
    wish: Wish,
    front: Front | undefined,
    { nowMs }: Moment,
  ): number | null {
    const many = wish.mode === "exclusive" ? AHEAD_OF_EXCLUSIVE : AHEAD_OF_SHARED;
    const ahead = this.#statements
      .get("queue-ahead")
      .all(name, place, nowMs, this.visitors.bootId, many) as unknown as Standing[];
    let recheckMs = Infinity;
    for (const each of ahead.slice(0, AHEAD_OF_EXCLUSIVE)) {
      recheckMs = Math.min(recheckMs, each.boot === this.visitors.bootId ? each.endsMs - nowMs : each.ttlMs);
    }
    // The first of those who wait looks after all who are held; the others look after those just ahead of them.
    const first = front?.rows[front.held];
    if (front !== undefined && (first === undefined || first.place === place || recheckMs === Infinity)) {
      recheckMs = Math.min(recheckMs, front.endsInMs);
    }
    if (!this.#watch(owner, wish, ahead)) recheckMs = Math.min(recheckMs, UNHEARD_RECHECK_MS);
    return recheckMs === Infinity ? null : Math.max(recheckMs, 1);
  }

  /** False when one of those ahead cannot be heard. */
  #watch(owner: string, wish: Wish, nearestFirst: readonly Standing[]): boolean {
    const queue = nearestFirst.toReversed();
    const index = queue.length;
    const positions = watched([...queue, wish], index);
    const visitors = new Set<number>();
    for (const position of positions.length === 0 ? [index - 1] : positions) {
      const each = queue[position];
      if (each === undefined || each.visitor === this.visitors.self || each.boot !== this.visitors.bootId) continue;
      visitors.add(each.visitor);
    }
    const addresses = [...visitors].map((id) => this.#address(id));
    if (this.#bells.watch(owner, addresses)) return true;
    for (const id of visitors) this.visitors.suspect(id);
    return false;
  }

  #address(id: number): Address {
    return { visitor: id, bell: this.visitors.get(id)?.bell ?? null };
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
    this.fronts.settle(name, moment);
    this.checkBehind(name, place);
  }

  /** Who watched the one that stood at `place` has to pick another to watch. */
  checkBehind(name: Buffer, place: number): void {
    const next = this.#statements.get("next-behind").get(name, place) as
      { owner: string; visitor: number; token: number | null } | undefined;
    if (next?.token === null) this.#rings.push({ visitor: next.visitor, owner: next.owner, token: undefined });
  }

  /** Ends a held request against its owner's will; the owner's next renewal says why. */
  end(
    name: Buffer,
    victim: Pick<Row, "place" | "owner" | "visitor" | "ttlMs">,
    reason: "stolen" | "evicted",
    moment: Moment,
  ): void {
    this.#statements.get("delete-request").run(name, victim.place);
    if (victim.owner === "") return;
    this.#statements.get("prune-ended").run(moment.wallMs);
    this.#statements.get("add-ended").run(victim.owner, reason, moment.wallMs + victim.ttlMs);
    this.#rings.push({ visitor: victim.visitor, owner: victim.owner, token: undefined });
  }

  endedReason(owner: string): "stolen" | "evicted" | undefined {
    const row = this.#statements.get("ended-reason").get(owner) as { reason: "stolen" | "evicted" } | undefined;
    return row?.reason;
  }

  heldBy(name: Buffer, token: bigint): Pick<Row, "place" | "owner" | "visitor" | "ttlMs"> | undefined {
    return this.#statements.get("held-by-token").get(name, token) as
      Pick<Row, "place" | "owner" | "visitor" | "ttlMs"> | undefined;
  }

  /** Probes all who hold `name` or are next. True when somebody was dead. */
  suspectHolders(name: Buffer): boolean {
    const rows = this.fronts.page(name, Number.MIN_SAFE_INTEGER);
    const alive = rows.filter((row) => row.gone !== 1);
    for (const row of alive) this.visitors.suspect(row.visitor);
    this.visitors.probeSuspects();
    return this.fronts.page(name, Number.MIN_SAFE_INTEGER).filter((row) => row.gone !== 1).length < alive.length;
  }

  /** The whole queue in order, without those whose time is up. */
  queue(name: Buffer, moment: Moment): { row: Row; leftMs: number }[] {
    const queue: { row: Row; leftMs: number }[] = [];
    for (let after = Number.MIN_SAFE_INTEGER; ;) {
      const page = this.fronts.page(name, after);
      for (const row of page) {
        const leftMs = this.fronts.leftMs(name, row, moment);
        if (leftMs > 0) queue.push({ row, leftMs });
      }
      const last = page.at(-1);
      if (last === undefined) return queue;
      after = last.place;
    }
  }

  /** What the requests for `name` publish, by place. */
  published(name: Buffer): Map<number, string> {
    const rows = this.#statements.get("published").all(name) as unknown as { place: number; value: string }[];
    return new Map(rows.map((row) => [row.place, row.value]));
  }

  names(after: Uint8Array, from: Uint8Array, below: Uint8Array): Uint8Array[] {
    const rows = this.#statements.get("names").all(after, from, below) as unknown as { name: Uint8Array }[];
    return rows.map((row) => row.name);
  }

  /** Names that nobody asks for any more must not keep the rows of the dead for ever. */
  #sweepNames(moment: Moment): void {
    const swept = this.#statements.get("swept").get() as { swept: Uint8Array } | undefined;
    const rows = this.#statements.get("names-after").all(swept?.swept ?? Buffer.alloc(0), SWEPT_NAMES) as unknown as {
      name: Uint8Array;
    }[];
    for (const { name } of rows) this.fronts.settle(name, moment);
    this.#statements.get("prune-sightings").run();
    const last = rows.length < SWEPT_NAMES ? Buffer.alloc(0) : rows.at(-1)?.name;
    this.#statements.get("set-swept").run(last ?? Buffer.alloc(0));
  }

  /** After a commit. */
  #ring(): void {
    if (this.#rings.length === 0) return;
    const rings = this.#rings;
    this.#rings = [];
    for (const { visitor, owner, token } of rings) {
      if (visitor === this.visitors.self) {
        if (token === undefined) this.#events.check(owner);
        else this.#wasGranted(owner, token);
      } else if (token === undefined) this.#bells.ringCheck(this.#address(visitor), owner);
      else this.#bells.ringGranted(this.#address(visitor), owner, token);
    }
  }

  #wasGranted(owner: string, token: bigint): void {
    this.noteHeld(owner);
    this.#events.granted(owner, token);
  }

  /** The link to a process ahead has ended: if it is dead, its requests are removed by the next look. */
  #lookAfter(visitor: number): void {
    for (const delayMs of LOOK_AGAIN_MS) {
      this.#clock.after(delayMs, () => {
        const owners = this.#closing === undefined ? this.#bells.watchersOf(visitor) : [];
        if (owners.length === 0) return;
        this.visitors.suspect(visitor);
        for (const owner of owners) this.#events.check(owner);
      });
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.#transactions.run(() => this.visitors.leave());
    } catch {
      // The file is out of reach: our rows end with their leases, our presence with this process.
    } finally {
      this.#bells.close();
      this.#presence?.leave();
      this.#database.close();
    }
  }
}
