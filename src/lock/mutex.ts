/** One lock by name, with defaults: the manager's verbs without the name. Every recipe hands out this shape. */
import { ConfigError, NotSupportedError } from "../engine/errors.ts";
import type { LockMode } from "../engine/queue.ts";
import type { HeldLock } from "./held-lock.ts";
import {
  type AcquireOptions,
  callbackOf,
  checkName,
  filled,
  forAttempt,
  forWait,
  type LeaseOptions,
  type RequestOptions,
  type TryOptions,
  type Wanted,
} from "./options.ts";
import { reenter } from "./reentrancy.ts";
import type { Requests } from "./requests.ts";

/** Options of a recipe: as for `acquire`. The recipe itself decides the mode. */
export type RecipeOptions = Omit<AcquireOptions, "mode">;

export interface MutexOptions extends RecipeOptions {
  /**
   * A `request` inside a callback of the same mutex goes on under the same hold. Follows the async context; for the scoped
   * form only: `acquire` and `tryAcquire` never enter again. Default false.
   */
  reentrant?: boolean | undefined;
}

export interface Mutex {
  /** As `LockManager.request`, without the name. */
  request<T>(callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(
    options: Omit<RequestOptions, "mode"> & { ifAvailable?: false | undefined },
    callback: (lock: HeldLock) => T,
  ): Promise<Awaited<T>>;
  request<T>(options: Omit<RequestOptions, "mode">, callback: (lock: HeldLock | null) => T): Promise<Awaited<T>>;
  /** As `LockManager.acquire`, without the name. */
  acquire(options?: RecipeOptions): Promise<HeldLock>;
  /** As `LockManager.tryAcquire`, without the name. */
  tryAcquire(options?: Omit<TryOptions, "mode">): Promise<HeldLock | null>;
}

/** What a recipe fixes for all of its requests. */
export interface Recipe {
  readonly mode: LockMode;
  /** How many may be held at once; see `Wish.limit`. */
  readonly limit: number;
  readonly reentrant?: boolean;
  /** Refused inside a callback that holds the name in shared mode: it would wait for itself. */
  readonly notInsideShared?: boolean;
}

export class RecipeMutex implements Mutex {
  readonly #requests: Requests;
  readonly #name: string;
  readonly #recipe: Recipe;
  readonly #lease: LeaseOptions;
  readonly #wait: Pick<AcquireOptions, "waitMs" | "signal"> | undefined;

  constructor(requests: Requests, name: string, recipe: Recipe, defaults: RecipeOptions) {
    checkName(name);
    if (typeof defaults !== "object" || defaults === null) throw new TypeError("options must be an object");
    this.#requests = requests;
    this.#name = name;
    this.#recipe = recipe;
    const { ttlMs, minHoldMs, maxHoldMs, graceMs, waitMs, signal } = defaults;
    this.#lease = filled(requests.defaults, { ttlMs, minHoldMs, maxHoldMs, graceMs });
    this.#wait = waitMs === undefined && signal === undefined ? undefined : { waitMs, signal };
    // Wrong defaults show where they are written, not at the first request.
    this.#check({ mode: (defaults as AcquireOptions).mode });
  }

  request<T>(callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  request<T>(options: RequestOptions, callback: (lock: HeldLock) => T): Promise<Awaited<T>>;
  async request<T>(
    first: RequestOptions | null | undefined | ((lock: HeldLock) => T),
    second?: (lock: HeldLock) => T,
  ): Promise<Awaited<T>> {
    const { options, run } = callbackOf(first, second);
    const wanted = this.#checkRequest(options);
    if (this.#recipe.reentrant) {
      const scope = this.#requests.nesting.entered(this.#name);
      if (scope !== undefined) return await reenter(this.#requests, scope, wanted, run);
    }
    return await this.#requests.scoped(this.#name, wanted, run, this.#recipe.reentrant);
  }

  async acquire(options: RecipeOptions = {}): Promise<HeldLock> {
    return await this.#requests.handle(this.#name, this.#checkRequest(forWait(options)));
  }

  async tryAcquire(options: Omit<TryOptions, "mode"> = {}): Promise<HeldLock | null> {
    return await this.#requests.handleIfFree(this.#name, this.#checkRequest(forAttempt(options)));
  }

  #check(given: RequestOptions): Wanted {
    if (typeof given !== "object") throw new TypeError("options must be an object");
    if (given.mode !== undefined) {
      throw new ConfigError("a recipe decides the mode itself: leave it out");
    }
    const { limit, mode } = this.#recipe;
    // Default waits are not for requests that do not wait: given by hand there, they are refused.
    const waits = this.#wait !== undefined && !given.ifAvailable && !given.steal;
    const options = waits ? filled<RequestOptions>(this.#wait, given) : given;
    const wanted = this.#requests.check(this.#name, { ...options, mode }, this.#lease);
    return { ...wanted, limit };
  }

  /** Checks a request, not just defaults. */
  #checkRequest(given: RequestOptions): Wanted {
    const wanted = this.#check(given);
    const inside = this.#recipe.notInsideShared ? this.#requests.nesting.holding(this.#name) : undefined;
    if (inside?.hold.mode === "shared") {
      throw new NotSupportedError(
        `write was asked for inside a callback that holds read on ${JSON.stringify(this.#name)}: it would wait for itself. ` +
          "Leave the read callback first, then take write and look again",
      );
    }
    return wanted;
  }
}
