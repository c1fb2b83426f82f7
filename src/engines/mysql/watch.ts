/**
 * How waiters learn that it is their turn. Each watches the bell of one request ahead of it:
 *
 * - a bell of this process needs no connection: who leaves here is known here;
 * - a bell of another process is slept on in a session of its own, shared by all who wait for it here, a few at most;
 * - where there is no bell (semaphores, too many bells, a bell that is free although its request still stands: its session ended), one
 *   plain query asks for all such waiters together, at intervals that grow while nothing happens.
 *
 * All of it only makes things faster: keep-alives and `recheckMs` find every grant without it.
 */
import type { Clock, Timer } from "../../engine/clock.ts";
import type { StoreEvents } from "../../engine/lease-store.ts";
import { prefixOf } from "./bells.ts";
import type { Row } from "./client.ts";
import { listen, type Rang } from "./listener.ts";
import { text, tokenOf } from "./rows.ts";
import type { Session } from "./session.ts";

const FIRST_LOOK_MS = 25;
const LOOK_GROWTH = 1.5;
const LONGEST_LOOK_MS = 500;
/** After a connection was refused, no more are tried for this long. */
const REFUSED_PAUSE_MS = 5_000;
const SPARE_SESSION_MS = 10_000;

export interface WatchOptions {
  readonly clock: Clock;
  readonly open: () => Promise<Session>;
  /** How many sessions may sleep at a time; 0 where `GET_LOCK` does not work. */
  readonly mostListeners: number;
  /** Whether a bell with this prefix is held by this process. */
  readonly isOurs: (prefix: string) => boolean;
  /** Reads who of these owners is granted. */
  readonly look: (owners: readonly string[]) => Promise<readonly Row[]>;
  readonly events: StoreEvents;
}

interface Listening {
  readonly owners: Set<string>;
  session: Session | undefined;
}

export class Watch {
  readonly #options: WatchOptions;
  /** Who watches which bell; "" without one. */
  readonly #bells = new Map<string, string>();
  readonly #watchers = new Map<string, Set<string>>();
  readonly #listening = new Map<string, Listening>();
  /** The bell that was found free for this owner while its request ahead still stood. */
  readonly #dead = new Map<string, string>();
  readonly #lookers = new Set<string>();
  #lookTimer: Timer | undefined;
  #lookDueMs = 0;
  #lookMs = FIRST_LOOK_MS;
  #looking = false;
  /** Sessions for the next bell, the longest unused first, and what ends each of them. */
  readonly #spares = new Map<Session, Timer>();
  #refusedUntilMs = 0;
  #closed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** The owner is pending behind the request with this bell. */
  begin(owner: string, bell: string): void {
    if (this.#closed) return;
    if (this.#bells.get(owner) === bell) return;
    this.#leaveBell(owner);
    this.#bells.set(owner, bell);
    const watchers = this.#watchers.get(bell) ?? new Set();
    this.#watchers.set(bell, watchers.add(owner));
    if (bell === "" || this.#dead.get(owner) === bell) this.#lookFor(owner);
    else if (!this.#options.isOurs(prefixOf(bell))) this.#listenFor(owner, bell);
  }

  /** The owner is pending no more. */
  end(owner: string): void {
    if (!this.#bells.has(owner)) return;
    this.#leaveBell(owner);
    this.#dead.delete(owner);
  }

  /** A request of this process left and rang its bell: those who watched it here, and were not granted, ask again. */
  rang(bell: string): void {
    for (const owner of this.#watchers.get(bell) ?? []) {
      this.#leaveBell(owner);
      this.#options.events.check(owner);
    }
  }

  close(): void {
    this.#closed = true;
    this.#lookTimer?.cancel();
    for (const { session } of this.#listening.values()) session?.destroy();
    for (const [session, ending] of this.#spares) {
      ending.cancel();
      session.end();
    }
    this.#spares.clear();
  }

  #leaveBell(owner: string): void {
    const bell = this.#bells.get(owner);
    if (bell === undefined) return;
    this.#bells.delete(owner);
    this.#lookers.delete(owner);
    const watchers = this.#watchers.get(bell);
    watchers?.delete(owner);
    if (watchers?.size === 0) this.#watchers.delete(bell);
    const listening = this.#listening.get(bell);
    if (listening?.owners.delete(owner) === true && listening.owners.size === 0) {
      // Nobody waits for it here any more. The session may sleep for long, so it is given up.
      this.#listening.delete(bell);
      listening.session?.destroy();
    }
  }

  #listenFor(owner: string, bell: string): void {
    const present = this.#listening.get(bell);
    if (present !== undefined) {
      present.owners.add(owner);
      return;
    }
    const refused = this.#options.clock.monotonicMs() < this.#refusedUntilMs;
    if (refused || this.#listening.size >= this.#options.mostListeners) {
      this.#lookFor(owner);
      return;
    }
    const listening: Listening = { owners: new Set([owner]), session: undefined };
    this.#listening.set(bell, listening);
    void this.#listen(bell, listening);
  }

  async #listen(bell: string, listening: Listening): Promise<void> {
    let rang: Rang = { outcome: "failed" };
    try {
      listening.session = this.#takeSpare() ?? (await this.#options.open());
      rang = await listen(listening.session, bell, listening.owners);
    } catch {
      this.#refusedUntilMs = this.#options.clock.monotonicMs() + REFUSED_PAUSE_MS;
    }
    if (this.#listening.get(bell) === listening) this.#listening.delete(bell);
    if (listening.session !== undefined) this.#spare(listening.session, rang.outcome !== "failed");
    this.#promote();
    const granted = rang.outcome === "rang" ? this.#report(rang.rows) : new Set<string>();
    for (const owner of listening.owners) {
      if (granted.has(owner)) continue;
      this.#leaveBell(owner);
      this.#dead.set(owner, bell);
      this.#options.events.check(owner);
    }
  }

  /** A session is free: the one that has looked for the longest, and so is likely the next of its queue, gets it. */
  #promote(): void {
    for (const owner of this.#lookers) {
      if (this.#listening.size >= this.#options.mostListeners) return;
      const bell = this.#bells.get(owner) ?? "";
      if (bell === "" || this.#dead.get(owner) === bell) continue;
      this.#lookers.delete(owner);
      this.#listenFor(owner, bell);
    }
  }

  /** Keeps a session for the next bell, for a while. */
  #spare(session: Session, usable: boolean): void {
    if (!usable || this.#closed || session.ended) {
      session.destroy();
      return;
    }
    const ending = this.#options.clock.after(SPARE_SESSION_MS, () => {
      if (this.#spares.delete(session)) session.end();
    });
    this.#spares.set(session, ending);
  }

  /** The one that was used last: the others may come to their end. */
  #takeSpare(): Session | undefined {
    const [session, ending] = [...this.#spares].at(-1) ?? [];
    if (session === undefined) return undefined;
    ending?.cancel();
    this.#spares.delete(session);
    return session;
  }

  #report(rows: readonly Row[]): Set<string> {
    const granted = new Set<string>();
    for (const row of rows) {
      const owner = text(row["owner"]);
      const token = tokenOf(row);
      if (token === null) continue;
      granted.add(owner);
      this.end(owner);
      this.#options.events.granted(owner, token);
    }
    return granted;
  }

  #lookFor(owner: string): void {
    this.#lookers.add(owner);
    this.#lookMs = FIRST_LOOK_MS;
    this.#scheduleLook();
  }

  /** Newcomers bring the next look forward, never back. */
  #scheduleLook(): void {
    const dueMs = this.#options.clock.monotonicMs() + this.#lookMs;
    if (this.#lookTimer !== undefined && this.#lookDueMs <= dueMs) return;
    this.#lookTimer?.cancel();
    this.#lookDueMs = dueMs;
    this.#lookTimer = this.#options.clock.after(this.#lookMs, () => {
      this.#lookTimer = undefined;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#lookers.size === 0 || this.#closed) return;
    this.#looking = true;
    const rows = await this.#options.look([...this.#lookers]).catch(() => []);
    this.#looking = false;
    this.#lookMs = rows.length > 0 ? FIRST_LOOK_MS : Math.min(this.#lookMs * LOOK_GROWTH, LONGEST_LOOK_MS);
    this.#report(rows);
    if (!this.#closed && this.#lookers.size > 0) this.#scheduleLook();
  }
}
