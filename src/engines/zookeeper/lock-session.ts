/** One ZooKeeper session as the locks see it: its lease, its end, and what is still to be removed from it. */
import { type Clock, instant } from "../../engine/clock.ts";
import type { Lease } from "../../engine/engine.ts";
import { remainingMs } from "../../engine/lease.ts";
import type { ZooKeeper } from "../../zookeeper/index.ts";
import { hasCode, isSessionOver, isUnknown } from "./failure.ts";
import { Solitude } from "./solitude.ts";

export class LockSession {
  readonly zk: ZooKeeper;
  /** How long after an answered request no server can have ended the session. */
  readonly leaseMs: number;
  /** Paths of nodes of this session that hold a lock alone: once such a node is gone, the next in its queue has the lock. */
  readonly alone: Set<string> = new Set();
  readonly solitude: Solitude = new Solitude();
  readonly #clock: Clock;
  readonly #whenOver = new Set<() => void>();
  /** Removals that have to wait for a connection. */
  #backlog: (() => Promise<unknown>)[] = [];

  constructor(zk: ZooKeeper, leaderLagMs: number, clock: Clock) {
    this.zk = zk;
    this.leaseMs = zk.sessionTimeoutMs - leaderLagMs;
    this.#clock = clock;
    zk.onState((state) => {
      if (state === "connected") this.#removeBacklog();
      if (!this.over) return;
      const listeners = [...this.#whenOver];
      this.#whenOver.clear();
      for (const listener of listeners) listener();
    });
  }

  get over(): boolean {
    return this.zk.state === "expired" || this.zk.state === "closed";
  }

  /** The lease of every lock of this session: pings renew them all. */
  lease(): Lease {
    return { from: this.zk.confirmedAt, ttlMs: this.leaseMs };
  }

  remainingMs(): number {
    return remainingMs(this.lease(), instant(this.#clock));
  }

  /** Calls `listener` when the session ends, once. Returns what takes it away. */
  whenOver(listener: () => void): () => void {
    this.#whenOver.add(listener);
    return () => this.#whenOver.delete(listener);
  }

  /** Deletes `path`; see `removal`. */
  remove(path: string): Promise<void> {
    return this.removal(() => this.zk.delete(path));
  }

  /**
   * Calls `remove` (which fails with NO_NODE when there is nothing to remove) until that is certainly so or the session is
   * over. Resolves then, or when no server could be reached for as long as a session lasts: it is tried again with the next
   * connection. Never rejects.
   */
  async removal(remove: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await remove();
        return;
      } catch (error) {
        if (hasCode(error, "NO_NODE") || isSessionOver(error)) return;
        if (isUnknown(error)) continue; // waits for the next connection
        if (hasCode(error, "CONNECTION_LOSS")) this.#backlog.push(remove);
        return;
      }
    }
  }

  #removeBacklog(): void {
    for (const remove of this.#backlog.splice(0)) void this.removal(remove);
  }
}
