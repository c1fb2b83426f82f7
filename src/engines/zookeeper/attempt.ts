/**
 * The common part of both recipes: an attempt to get a lock within one session, and its caller, who may leave at any
 * moment. The caller has the answer at once; what the attempt has left on the server is removed behind it.
 */
import type { Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import type { Client, Grant, RequestSpec } from "../../engine/engine.ts";
import { ConfigError, EngineUnavailableError } from "../../engine/errors.ts";
import type { Acl } from "../../zookeeper/index.ts";
import { failureOf, hasCode, isSessionOver } from "./failure.ts";
import type { Generations } from "./generations.ts";
import { NodeGrant, type HeldNode } from "./grant.ts";
import type { LockSession } from "./lock-session.ts";

/** What an attempt needs of its engine. */
export interface Ground {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly root: string;
  readonly acl: Acl | undefined;
  readonly generations: Generations;
}

/** "again": the place is lost through no fault of the caller (the session ended, the node was deleted); queue anew. */
export type Outcome = Grant | null | "again";

/** A lease with less left than this share of it is confirmed before it is handed on. */
const FRESH_SHARE = 1 / 3;
const MOST_TRIES = 10;

export abstract class Attempt {
  protected readonly ground: Ground;
  protected readonly session: LockSession;
  protected readonly spec: RequestSpec;
  #abandoned = false;
  #reject: ((reason: unknown) => void) | undefined;

  constructor(ground: Ground, session: LockSession, spec: RequestSpec) {
    this.ground = ground;
    this.session = session;
    this.spec = spec;
  }

  /** Resolves to a node that holds the lock, or null when busy and not to wait, or "again". Leaves nothing but that node. */
  protected abstract run(): Promise<HeldNode | null | "again">;
  /** Ends a wait within `run`, because the attempt was abandoned. */
  protected abstract wake(): void;
  /** Called when `run` has failed: removes in the background whatever may be there. */
  protected abstract leave(): void;

  /** For `run`, wherever it has waited: nobody wants the lock any more. */
  protected throwIfAbandoned(): void {
    if (this.#abandoned) throw new Error("abandoned");
  }

  outcome(signal: AbortSignal | undefined): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => this.abandon(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#reject = reject;
      const settled = (): void => {
        this.#reject = undefined;
        signal?.removeEventListener("abort", onAbort);
      };
      this.#outcome().then(
        (outcome) => {
          settled();
          if (!this.#abandoned) resolve(outcome);
          else if (outcome instanceof NodeGrant) void outcome.discard();
        },
        (error: unknown) => {
          settled();
          reject(error);
        },
      );
    });
  }

  /** The caller gets `reason` now, unless it has its answer already. */
  abandon(reason: unknown): void {
    if (this.#reject === undefined || this.#abandoned) return;
    this.#abandoned = true;
    this.#reject(reason);
    this.wake();
  }

  async #outcome(): Promise<Outcome> {
    try {
      const node = await this.run();
      if (node === null || node === "again") return node;
      if (this.#isFresh() || (await this.#confirm(node))) return new NodeGrant(this.ground, this.session, node);
      return "again";
    } catch (error) {
      this.leave();
      if (isSessionOver(error) && this.session.zk.state === "expired") return "again";
      throw failureOf(error);
    }
  }

  /** Nobody is handed a lock that is over, or nearly so: events can be old, and this process may have slept. */
  #isFresh(): boolean {
    return this.session.remainingMs() >= Math.max(this.spec.graceMs, this.session.leaseMs * FRESH_SHARE);
  }

  /** Asks the server until the lease is fresh; false when our node is gone. */
  async #confirm({ path, czxid }: HeldNode): Promise<boolean> {
    for (let tries = 0; !this.#isFresh(); tries++) {
      if (tries === MOST_TRIES)
        throw new EngineUnavailableError("ZooKeeper answers too slowly for its session time-out");
      if ((await this.session.zk.exists(path))?.czxid !== czxid) return false;
    }
    return true;
  }

  /**
   * Calls `create`, which fails with NO_NODE where the container is missing; then makes the container, once in the same
   * write as the next try, and step by step after that.
   */
  protected async inContainer<T>(path: string, create: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await create();
      } catch (error) {
        if (!hasCode(error, "NO_NODE")) throw error;
        if (tries === MOST_TRIES)
          throw new EngineUnavailableError(`${path} is removed again and again`, { cause: error });
        const again = tries === 0;
        const making = this.session.zk.create(path, "", { mode: "container", acl: this.ground.acl, more: again });
        if (again) making.catch(() => {});
        else await making.catch((reason: unknown) => this.#containerFailed(reason));
      }
    }
  }

  #containerFailed(error: unknown): void {
    if (hasCode(error, "NODE_EXISTS")) return;
    if (!hasCode(error, "NO_NODE")) throw error;
    throw new ConfigError(`the root ${this.ground.root} has been deleted from ZooKeeper; connect again`, {
      cause: error,
    });
  }
}

/** Of each client, who it is: all requests of a lock manager say the same. */
const clientTexts = new WeakMap<Client, string>();

export function clientData({ client, value }: RequestSpec): string {
  if (value !== undefined) return JSON.stringify({ ...client, value });
  let text = clientTexts.get(client);
  if (text === undefined) clientTexts.set(client, (text = JSON.stringify(client)));
  return text;
}
