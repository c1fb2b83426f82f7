/**
 * Watches the nodes that a request waits for. Watches are set by reading: on a node that is gone none is left behind.
 */
import type { Alarm, Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import type { WatchEvent } from "../../zookeeper/index.ts";
import { hasCode } from "./failure.ts";
import type { LockSession } from "./lock-session.ts";

/**
 * What has happened to one of the nodes waited for: "gone": removed; "passed": written to and removed by a holder that had the
 * lock alone; or something else.
 */
export type Change = "gone" | "passed" | "other";

/** Who waits for longer than this also watches its own node. */
const OWN_WATCH_AFTER_MS = 1_000;
/** Events do not get lost; if one does all the same, a waiter looks again after this share of the lease. */
const LOOK_AGAIN_SHARE = 2 / 3;

export class Lookout {
  readonly #session: LockSession;
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  /** On which paths our watcher is set. */
  readonly #watched = new Set<string>();
  #paths: readonly string[] = [];
  #alarm: Alarm | undefined;
  #waiting: { resolve(change: Change): void; reject(error: unknown): void } | undefined;

  constructor(session: LockSession, clock: Clock, alarms: Alarms) {
    this.#session = session;
    this.#clock = clock;
    this.#alarms = alarms;
  }

  /**
   * Resolves when something has happened to one of `paths`, or to nothing in particular. Rejects when the server cannot be asked.
   * `own`: the waiter's node. Watches that are set already stay.
   */
  change(paths: readonly string[], own: string): Promise<Change> {
    this.#paths = paths;
    for (const path of this.#watched) if (path !== own && !paths.includes(path)) this.#unwatch(path);
    const { promise, resolve, reject } = Promise.withResolvers<Change>();
    this.#waiting = { resolve, reject };
    for (const path of paths) if (!this.#watched.has(path)) this.#watch(path);
    this.#lookAgainIn(this.#watched.has(own) ? this.#longMs : OWN_WATCH_AFTER_MS, own);
    return promise;
  }

  /** Ends a wait. */
  wake(): void {
    this.#settle("other");
  }

  /** Takes all watches away that have not fired. */
  stop(): void {
    this.#settle("other");
    for (const path of this.#watched) this.#unwatch(path);
  }

  get #longMs(): number {
    return this.#session.leaseMs * LOOK_AGAIN_SHARE;
  }

  readonly #onEvent = ({ type, path }: WatchEvent): void => {
    this.#watched.delete(path);
    const change = type === "deleted" ? "gone" : type === "changed" ? "passed" : "other";
    this.#settle(this.#paths.includes(path) ? change : "other");
  };

  #watch(path: string): void {
    this.#watched.add(path);
    this.#session.zk.getData(path, { watch: this.#onEvent }).catch((error: unknown) => {
      this.#watched.delete(path);
      if (hasCode(error, "NO_NODE")) this.#settle(this.#paths.includes(path) ? "gone" : "other");
      else this.#waiting?.reject(error);
    });
  }

  #unwatch(path: string): void {
    this.#watched.delete(path);
    this.#session.zk.removeWatches(path, this.#onEvent).catch(() => {}); // at worst it fires for nothing
  }

  #lookAgainIn(delayMs: number, own: string): void {
    this.#alarm?.cancel();
    this.#alarm = this.#alarms.set(this.#clock.monotonicMs() + delayMs, () => {
      for (const path of [own, ...this.#paths]) this.#watch(path);
      this.#lookAgainIn(this.#longMs, own);
    });
  }

  #settle(change: Change): void {
    this.#alarm?.cancel();
    this.#waiting?.resolve(change);
    this.#waiting = undefined;
  }
}
