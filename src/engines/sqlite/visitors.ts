/** The connections to a lock file: who they are, whether they live, and what the dead have left behind. */
import type { Clock } from "../../engine/clock.ts";
import type { Address } from "./bells.ts";
import type { GuardedGroup } from "./guarded-group.ts";
import { BELL_SUFFIX, type OwnPresence, type PresenceFolder } from "./presence.ts";
import type { Statements } from "./statements.ts";

export interface Visitor {
  readonly id: number;
  readonly boot: string;
  readonly presence: string | null;
  readonly presenceInode: string | null;
  readonly bell: string | null;
  readonly guardPid: number | null;
  readonly guardStarted: string | null;
  readonly pidSpace: string | null;
  readonly gone: number;
}

const MOST_KNOWN = 1_024;
const MOST_PROBES = 16;
const MOST_LEFTOVERS = 100;
const WEEK_MS = 7 * 24 * 60 * 60 * 1_000;
const ID_BITS = 48;

/** A number that no other visitor has. */
export function newVisitorId(clock: Clock): number {
  return Buffer.from(clock.randomBytes(ID_BITS / 8)).readUIntBE(0, ID_BITS / 8);
}

/** All methods but `suspect` work inside the lock file's transaction. */
export class Visitors {
  readonly self: number;
  readonly bootId: string;
  readonly #clock: Clock;
  readonly #folder: PresenceFolder;
  readonly #statements: Statements;
  readonly #known = new Map<number, Visitor>();
  readonly #suspects = new Set<number>();

  constructor(self: number, bootId: string, clock: Clock, folder: PresenceFolder, statements: Statements) {
    this.self = self;
    this.bootId = bootId;
    this.#clock = clock;
    this.#folder = folder;
    this.#statements = statements;
  }

  enter(presence: OwnPresence, bell: string, guarded: GuardedGroup | undefined): void {
    this.#statements
      .get("insert-visitor")
      .run(
        this.self,
        this.bootId,
        presence.name,
        presence.inode,
        bell,
        guarded?.pid ?? null,
        guarded?.startedAt ?? null,
        guarded?.pidSpace ?? null,
        Math.floor(this.#clock.wallMs()),
      );
  }

  /** Where the bell hangs instead; null: there is none. */
  moveBell(bell: string | null): void {
    this.#statements.get("move-bell").run(bell, this.self);
  }

  /** The connection closes. What it still holds ends with its leases: nobody may take it at once. */
  leave(): void {
    this.#statements.get("leave").run(this.self);
    this.#prune();
  }

  get(id: number): Visitor | undefined {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const visitor = this.#statements.get("visitor").get(id) as Visitor | undefined;
    if (visitor === undefined) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, visitor);
    return visitor;
  }

  address(id: number): Address {
    return { visitor: id, bell: this.get(id)?.bell ?? null };
  }

  /** It may be dead: the next transaction probes it. */
  suspect(id: number): void {
    if (id !== this.self) this.#suspects.add(id);
  }

  /** Probes whoever is suspected, and marks the dead. */
  probeSuspects(): void {
    if (this.#suspects.size === 0) return;
    for (const id of this.#suspects) this.#probe(id);
    this.#suspects.clear();
  }

  #probe(id: number): void {
    const visitor = this.get(id);
    if (visitor === undefined || visitor.boot !== this.bootId || visitor.presence === null) return;
    if (this.#folder.probe(visitor.presence, visitor.presenceInode ?? "") !== "dead") return;
    this.#statements.get("mark-gone").run(id);
    this.#folder.remove(visitor.presence);
    if (visitor.bell?.endsWith(BELL_SUFFIX) === true) this.#folder.remove(visitor.bell);
  }

  /** Tidies up after those who died without a word. Bounded; what is left over is for the next one who opens the file. */
  sweep(): void {
    const present = this.#statements.get("present-visitors").all(this.bootId, MOST_PROBES) as unknown as {
      id: number;
    }[];
    for (const { id } of present) if (id !== this.self) this.#probe(id);
    this.#prune();
    const known = this.#statements.get("known-presence");
    for (const name of this.#folder.leftovers(MOST_LEFTOVERS)) {
      if (known.get(name, name) !== undefined) continue;
      // Made by one who died before it could register: registering is part of the transaction that makes it.
      if (name.endsWith(BELL_SUFFIX) || this.#folder.probeUnregistered(name) === "dead") this.#folder.remove(name);
    }
  }

  #prune(): void {
    this.#statements.get("prune-visitors").run(this.bootId, Math.floor(this.#clock.wallMs() - WEEK_MS));
  }
}
