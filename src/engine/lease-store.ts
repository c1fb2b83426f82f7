/**
 * What a lease engine has to provide: the atomic verbs of the queue, each idempotent by owner, each judged by the
 * store's own clock read inside the atomic step. Everything else (waiting, keep-alives, bells, lost replies, withdrawal in
 * the background, batches, deadlines) is done once, for all of them, by `LeaseEngine`.
 *
 * Every verb that changes a queue first drops the requests whose time is up, then applies the rule of `queue.ts`, and
 * rings (`StoreEvents`) those that it newly grants in other processes or on other connections. Where a
 * place is kept by `minHoldMs` alone, nobody will ring when it ends: `check` tells whoever is then first among the pending,
 * and its answer says when to ask again (when the place loses its owner, and when another becomes the first). Transport
 * failures reject with `EngineUnavailableError`; a verb must settle in bounded time even when the server is frozen.
 */
import type { Client, Queue, Traits } from "./engine.ts";
import type { LossReason } from "./errors.ts";
import type { LockMode } from "./queue.ts";

/** A request for the store. `owner` is unguessable and names this request in every later verb. */
export interface Ask {
  readonly name: string;
  readonly owner: string;
  readonly mode: LockMode;
  readonly limit: number;
  /** The lease to set when it is granted by this very command or renewed while held. */
  readonly ttlMs: number;
  /** The lease to set while it is pending; at most `ttlMs`. */
  readonly pendingTtlMs: number;
  /** The place stays taken this long after the grant, whatever happens to its owner. */
  readonly minHoldMs: number;
  /** False: when it cannot be granted at once it is not added, and the answer is "busy". */
  readonly wait: boolean;
  readonly steal: boolean;
  readonly client: Client;
  /**
   * Published with the request, for elections: kept while the request stands and shown by `inspect` as
   * `QueueEntry.value`; nothing else reads it. Well-formed, at most `LONGEST_VALUE_BYTES` (4,096) in UTF-8, checked by the
   * caller. Most requests have none, and then it may cost nothing.
   */
  readonly value?: string | undefined;
}

/** What keeps a request alive: its identity and the TTLs to set, by its state. */
export interface Renewal {
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly pendingTtlMs: number;
}

export type Answer =
  /** Held. `ttlMs` is the TTL that this command has set (a store never shortens a lease). */
  | { readonly state: "held"; readonly token: bigint; readonly ttlMs: number }
  /**
   * In the queue. `recheckMs`: in how many ms the earliest lease (or minimum hold) ahead of it ends; it asks again then.
   * Null when nothing ahead ends by itself. Too small costs a command, too large costs liveness.
   */
  | { readonly state: "pending"; readonly ttlMs: number; readonly recheckMs: number | null }
  /** Not free, and not added. */
  | { readonly state: "busy" }
  /** Not in the queue (any more). "expired" also when nothing is known of it. */
  | { readonly state: "gone"; readonly reason: LossReason };

/** Hints from the store. They only make it faster: losing one costs at most a keep-alive period. */
export interface StoreEvents {
  /** The request was granted with `token`, by a step that the store has completed. Its lease is as it was. */
  granted(owner: string, token: bigint): void;
  /** Something happened to the request (stolen, evicted, perhaps free): ask again now. */
  check(owner: string): void;
  /** Bells may have been lost (a reconnect): every pending request asks again, spread over a moment. */
  checkAll(): void;
}

export interface LeaseStore {
  readonly traits: Traits;
  open(events: StoreEvents): Promise<void>;
  /** Adds the request at the end of the queue (steal: at the front) unless it is there; then answers its state. Also renews. */
  request(ask: Ask): Promise<Answer>;
  /** Renews what is still there and answers the state of each, in order. Names may differ; at most 500 a call. */
  renew(renewals: readonly Renewal[]): Promise<readonly Answer[]>;
  /**
   * The owner leaves. `token` is the one it holds; a request that was granted keeps its place, ownerless, until its
   * `minHoldMs` is over. Nothing happens when it is not there.
   */
  release(name: string, owner: string, token: bigint): Promise<void>;
  /** The owner leaves, pending or held, and no `minHoldMs` applies. Nothing happens when it is not there. */
  withdraw(name: string, owner: string): Promise<void>;
  inspect(name: string): Promise<Queue>;
  names(prefix: string): AsyncIterable<string>;
  /** Ends the holder with this token, also an ownerless place. False when there is none. The victim's renewal answers gone, "evicted". */
  evict(name: string, token: bigint): Promise<boolean>;
  /** Optional: see `Engine.watch`. Leave it out rather than poll. */
  watch?: ((name: string, changed: () => void) => () => void) | undefined;
  close(): Promise<void>;
}
