/**
 * Leader election on the queue of one name: the candidate that holds it leads, its fencing token is the number of its
 * term. A new leader is elected when the old one resigned or its deadline is over, never before (S1 of a mutex).
 */
import { Backoff } from "../engine/backoff.ts";
import { ConfigError, EngineUnavailableError, LockLostError } from "../engine/errors.ts";
import { valueProblem } from "../engine/name.ts";
import { handleFor, type HeldLock } from "./held-lock.ts";
import type { Hold } from "./hold.ts";
import { currentLeader, type Leader, observeLeader, type ObserveOptions, pause } from "./leader.ts";
import { checkName, filled, type LeaseOptions, type Wanted } from "./options.ts";
import type { Requests } from "./requests.ts";

export interface CampaignOptions {
  /** Withdraws the candidate; ignored once elected. */
  signal?: AbortSignal | undefined;
  /** Published with leadership, for example the leader's address: at most 4 KiB of UTF-8. Default: none. */
  value?: string | undefined;
}

export interface LeadOptions extends CampaignOptions {
  /** Ends it: while a candidate, by withdrawing; while the leader, `term.signal` aborts. `lead` then resolves. */
  signal: AbortSignal;
}

export interface Election {
  /**
   * Stands for election and runs `callback` in each term, until it returns (it resigns, `lead` resolves), throws (it
   * resigns, `lead` rejects) or `signal` aborts (`lead` resolves once the callback has settled). After a loss it waits for
   * the callback and stands again; whatever a callback throws after its term was lost is put down to the loss. While the
   * engine cannot be reached it goes on trying. `term.signal` aborts on loss (`graceMs` before the deadline) and with `signal`.
   */
  lead(callback: (term: HeldLock) => unknown, options: LeadOptions): Promise<void>;
  /** Waits until elected; the term lasts until it is released or lost. Errors: as `acquire`. Cost: one round trip. */
  campaign(options?: CampaignOptions): Promise<HeldLock>;
  /** The leader now, or null. Cost: one round trip. */
  leader(): Promise<Leader | null>;
  /**
   * The leader now, then each new one; null while there is none. Changes that follow each other quickly may be seen as one.
   * Where the engine rings a bell for observers nothing is polled; elsewhere it is asked every `everyMs`.
   * Errors: `EngineUnavailableError`: nobody knows then who leads.
   */
  observe(options: ObserveOptions): AsyncIterable<Leader | null>;
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 10_000;

export class QueueElection implements Election {
  readonly #requests: Requests;
  readonly #name: string;
  readonly #defaults: LeaseOptions;

  constructor(requests: Requests, name: string, defaults: LeaseOptions) {
    checkName(name);
    if (typeof defaults !== "object" || defaults === null) throw new TypeError("options must be an object");
    const { ttlMs, minHoldMs, maxHoldMs, graceMs } = defaults;
    this.#requests = requests;
    this.#name = name;
    this.#defaults = filled(requests.defaults, { ttlMs, minHoldMs, maxHoldMs, graceMs });
    this.#check({});
  }

  async campaign(options: CampaignOptions = {}): Promise<HeldLock> {
    return await this.#requests.handle(this.#name, this.#check(options ?? {}));
  }

  async lead(callback: (term: HeldLock) => unknown, options: LeadOptions): Promise<void> {
    if (typeof callback !== "function") throw new TypeError("lead needs a callback");
    const { signal, value } = options ?? {};
    if (!(signal instanceof AbortSignal)) throw new TypeError("lead needs a signal, to end it");
    const wanted = this.#check({ signal, value });
    while (!signal.aborted) {
      const hold = await this.#elected(wanted, signal);
      if (hold === null || (await this.#serve(hold, callback, signal))) return;
    }
  }

  async leader(): Promise<Leader | null> {
    return await currentLeader(this.#requests, this.#name);
  }

  observe(options: ObserveOptions): AsyncIterable<Leader | null> {
    return observeLeader(this.#requests, this.#name, options);
  }

  /** Stands until elected, also through an outage of the engine. Null when `signal` aborts. */
  async #elected(wanted: Wanted, signal: AbortSignal): Promise<Hold | null> {
    const { clock, keeper } = this.#requests;
    const retry = new Backoff(clock, FIRST_RETRY_MS, LONGEST_RETRY_MS);
    for (;;) {
      try {
        return await this.#requests.hold(this.#name, wanted);
      } catch (error) {
        if (signal.aborted) return null;
        // A loss here: the term was over before it reached us.
        if (!(error instanceof EngineUnavailableError || error instanceof LockLostError)) throw error;
      }
      await keeper.during(pause(clock, retry.next(), signal, this.#requests.closing));
    }
  }

  /** One term. Resolves to whether it was the last. */
  async #serve(hold: Hold, callback: (term: HeldLock) => unknown, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#requests.runInside(hold, handleFor(hold, signal), false, callback);
      return true;
    } catch (error) {
      const lost = hold.loss !== undefined || (!hold.released && !hold.isHeld());
      if (lost) return signal.aborted;
      if (signal.aborted && isDueTo(error, signal)) return true;
      throw error;
    } finally {
      await hold.release();
    }
  }

  #check({ signal, value }: CampaignOptions): Wanted {
    if (value !== undefined) {
      if (typeof value !== "string") throw new TypeError("a published value is a string");
      const problem = valueProblem(value);
      if (problem !== undefined) throw new ConfigError(problem);
    }
    return { ...this.#requests.check(this.#name, { signal }, this.#defaults), value };
  }
}

/** Whether `error` is how an aborted call fails: the reason itself (fetch), or an error with it as cause (Node). */
function isDueTo(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.cause === signal.reason);
}
