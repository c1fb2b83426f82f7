/** One open connection to the lock file: its transactions, its presence, its bells, and the rows that are its own. */
import type { Clock } from "../../engine/clock.ts";
import type { StoreEvents } from "../../engine/lease-store.ts";
import { Bells } from "./bells.ts";
import { type LockFile, openLockFile } from "./database.ts";
import type { GuardedGroup } from "./guarded-group.ts";
import { lockFileIdentity } from "./file-identity.ts";
import { bootId, pidSpace, randomId } from "./machine.ts";
import { type OwnPresence, PresenceFolder } from "./presence.ts";
import { Predecessors } from "./predecessors.ts";
import { type Moment, QueueFronts } from "./queue-front.ts";
import { BEFORE_ALL_NAMES, Requests, type Ring } from "./requests.ts";
import { RightOfWay } from "./right-of-way.ts";
import { engineError } from "./sqlite-errors.ts";
import { Statements } from "./statements.ts";
import { Transactions } from "./transactions.ts";
import { newVisitorId, Visitors } from "./visitors.ts";

/** When a process dies its descriptors close in no order that we know: its lock may outlive its socket by a moment. */
const LOOK_AGAIN_MS = [0, 5, 30, 150];
const IDENTIFY_EVERY_MS = 1_000;
const SWEPT_NAMES = 32;

export interface StoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly guarded?: GuardedGroup | undefined;
  /** Leaves it to the end of the process to close the lock file. */
  readonly endsWithProcess?: boolean | undefined;
  /** Which boot this is; for tests. */
  readonly bootId?: string | undefined;
}

export class Session {
  readonly visitors: Visitors;
  readonly fronts: QueueFronts;
  readonly requests: Requests;
  readonly predecessors: Predecessors;
  readonly #clock: Clock;
  readonly #events: StoreEvents;
  readonly #file: LockFile;
  readonly #statements: Statements;
  readonly #transactions: Transactions;
  readonly #bells: Bells;
  readonly #endsWithProcess: boolean;
  #presence: OwnPresence | undefined;
  #rings: Ring[] = [];
  #identifiedAtMs = -Infinity;
  #closing: Promise<void> | undefined;

  static async open(options: StoreOptions, events: StoreEvents): Promise<Session> {
    const file = await openLockFile(options.path, options.clock);
    const { database, path } = file;
    const session = new Session(file, options, events);
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

  private constructor(file: LockFile, options: StoreOptions, events: StoreEvents) {
    const { clock } = options;
    const { database, path } = file;
    const folder = new PresenceFolder(path);
    this.#clock = clock;
    this.#events = events;
    this.#file = file;
    this.#endsWithProcess = options.endsWithProcess === true;
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
    this.requests = new Requests(this.#statements, this.visitors, this.fronts, {
      ring: (ring) => this.#rings.push(ring),
      waitsNoMore: (owner) => this.#bells.watch(owner, []),
    });
    this.predecessors = new Predecessors(this.#statements, this.visitors, this.#bells);
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

  /**
   * Whether the lock file and its log are still those at their paths. Removed or replaced, they are files that nobody
   * else opens.
   * Looks once a second at most.
   */
  isCurrent(): boolean {
    const now = this.#clock.monotonicMs();
    if (now - this.#identifiedAtMs < IDENTIFY_EVERY_MS) return true;
    this.#identifiedAtMs = now;
    return lockFileIdentity(this.#file.path) === this.#file.identity;
  }

  /** Names that nobody asks for any more must not keep the rows of the dead for ever. */
  #sweepNames(moment: Moment): void {
    const swept = this.#statements.get("swept").get() as { swept: Uint8Array | null } | undefined;
    const after = swept?.swept ?? BEFORE_ALL_NAMES;
    const rows = this.#statements.get("names-after").all(after, SWEPT_NAMES) as unknown as { name: Uint8Array }[];
    for (const { name } of rows) this.fronts.settle(name, moment);
    this.#statements.get("prune-sightings").run();
    const last = rows.length < SWEPT_NAMES ? undefined : rows.at(-1)?.name;
    this.#statements.get("set-swept").run(last ?? null);
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
      } else if (token === undefined) this.#bells.ringCheck(this.visitors.address(visitor), owner);
      else this.#bells.ringGranted(this.visitors.address(visitor), owner, token);
    }
  }

  #wasGranted(owner: string, token: bigint): void {
    this.requests.noteHeld(owner);
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

  /** `reopens`: another connection of this process follows, which must find the file closed. */
  close(reopens: boolean = false): Promise<void> {
    this.#closing ??= this.#close(reopens);
    return this.#closing;
  }

  async #close(reopens: boolean): Promise<void> {
    try {
      await this.#transactions.run(() => this.visitors.leave());
    } catch {
      // The file is out of reach: our rows end with their leases, our presence with this process.
    } finally {
      this.#bells.close();
      this.#presence?.leave();
      if (reopens || !this.#endsWithProcess) this.#file.database.close();
    }
  }
}
