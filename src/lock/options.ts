/** Options, and the checks that every call makes before anything else happens. Units stand in the names. */
import { ConfigError, NotSupportedError } from "../engine/errors.ts";
import type { Traits } from "../engine/engine.ts";
import { nameProblem } from "../engine/name.ts";
import type { LockMode } from "../engine/queue.ts";
import type { HeldLock } from "./held-lock.ts";

export interface LeaseOptions {
  /**
   * The lease, in ms: how long the lock outlives a crashed holder. Renewed every third of it while held.
   * Default 30,000; 100 to 86,400,000. Sets nothing on session engines (`traits.lease`).
   */
  ttlMs?: number | undefined;
  /**
   * The name stays taken for this long after the grant, even after release, exit or crash, in ms. Default 0; at most
   * 86,400,000. `ConfigError` where the engine cannot (`traits.minHold`).
   */
  minHoldMs?: number | undefined;
  /** The lock is lost (reason "max-hold") and released when held for so long, in ms. Default: no limit. */
  maxHoldMs?: number | undefined;
  /** `signal` aborts this long before the deadline, to leave time to stop, in ms. Default 0; at most half of `ttlMs`. */
  graceMs?: number | undefined;
}

export interface TryOptions extends LeaseOptions {
  /** "exclusive" (the default) or "shared". */
  mode?: LockMode | undefined;
}

export interface AcquireOptions extends TryOptions {
  /** Give up with `LockTimeoutError` after so many ms. Default: wait for ever. 0: one attempt. */
  waitMs?: number | undefined;
  /** Withdraws the request while it is pending; ignored once granted. */
  signal?: AbortSignal | undefined;
}

export interface RequestOptions extends AcquireOptions {
  /** Call back with null at once when the lock is not free. */
  ifAvailable?: boolean | undefined;
  /** End all holders and go to the front. Outside the promise of exclusion: tokens protect. */
  steal?: boolean | undefined;
}

/** Options after the checks, with defaults filled in. */
export interface Wanted {
  readonly mode: LockMode;
  /** How many may be held at once: 1, a semaphore's permits, `Infinity` for readers. */
  readonly limit: number;
  readonly ttlMs: number;
  readonly minHoldMs: number;
  readonly maxHoldMs: number;
  readonly graceMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  /** Published with the request; elections only. */
  readonly value: string | undefined;
}

const DEFAULT_TTL_MS = 30_000;
const SHORTEST_TTL_MS = 100;
const LONGEST_TTL_MS = 86_400_000;

/** Checks `name`. Throws `TypeError`, `NotSupportedError` or `ConfigError`. */
export function checkName(name: unknown): asserts name is string {
  if (typeof name !== "string") throw new TypeError(`a lock name must be a string, not ${describe(name)}`);
  if (name.startsWith("-")) throw new NotSupportedError("a lock name must not start with '-'");
  const problem = nameProblem(name);
  if (problem !== undefined) throw new ConfigError(problem);
}

/** Checks options against each other and against what the engine can do. Throws `TypeError`, `NotSupportedError`, `ConfigError`. */
export function checkOptions(given: RequestOptions, defaults: LeaseOptions, traits: Traits): Wanted {
  const { signal } = given;
  const mode: unknown = given.mode ?? "exclusive";
  if (mode !== "exclusive" && mode !== "shared") {
    throw new TypeError(`mode must be "exclusive" or "shared", not ${describe(mode)}`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`signal must be an AbortSignal, not ${describe(signal)}`);
  }
  const ifAvailable = Boolean(given.ifAvailable);
  const steal = Boolean(given.steal);
  checkCombination(given, mode, ifAvailable, steal);
  if (steal && !traits.steal)
    throw new ConfigError(`the ${traits.engine} engine does not offer steal; evict does it by hand`);
  if (mode === "shared" && !traits.shared) {
    throw new ConfigError(`the ${traits.engine} engine, as configured, offers exclusive locks only`);
  }
  const limit = mode === "exclusive" ? 1 : Infinity;
  const waitMs = wait(given.waitMs);
  return { mode, limit, signal, ifAvailable, steal, waitMs, value: undefined, ...checkLease(given, defaults, traits) };
}

function checkCombination(given: RequestOptions, mode: LockMode, ifAvailable: boolean, steal: boolean): void {
  if (steal && ifAvailable) throw new NotSupportedError("steal and ifAvailable exclude each other");
  if (steal && mode === "shared") throw new NotSupportedError("steal is for exclusive locks only");
  if (!steal && !ifAvailable) return;
  const option = steal ? "steal" : "ifAvailable";
  if (given.signal !== undefined) throw new NotSupportedError(`signal and ${option} exclude each other`);
  if (given.waitMs !== undefined) throw new NotSupportedError(`waitMs and ${option} exclude each other`);
}

/** Null stands for no options, as in Web Locks. Throws `TypeError`. */
export function checkObject(options: unknown): void {
  if (typeof options !== "object") throw new TypeError(`options must be an object, not ${describe(options)}`);
}

/** The options of the handle form that waits: others, such as steal, do not slip in. */
export function forWait(options: AcquireOptions | null): AcquireOptions {
  checkObject(options);
  const { ttlMs, minHoldMs, maxHoldMs, graceMs, mode, waitMs, signal } = options ?? {};
  return { ttlMs, minHoldMs, maxHoldMs, graceMs, mode, waitMs, signal };
}

/** The options of the handle form that does not wait. */
export function forAttempt(options: TryOptions | null): RequestOptions {
  checkObject(options);
  const { ttlMs, minHoldMs, maxHoldMs, graceMs, mode } = options ?? {};
  return { ttlMs, minHoldMs, maxHoldMs, graceMs, mode, ifAvailable: true };
}

/** `given`, with `defaults` where it says nothing. */
export function filled<Options extends object>(defaults: Options, given: Options): Options {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(entries) };
}

/** The two forms of `request`: with and without options. */
export function callbackOf<T>(
  first: RequestOptions | null | undefined | ((lock: HeldLock) => T),
  second: ((lock: HeldLock) => T) | ((lock: HeldLock | null) => T) | undefined,
): { readonly options: RequestOptions; readonly run: (lock: HeldLock | null) => T } {
  const callback: unknown = typeof first === "function" ? first : second;
  if (typeof callback !== "function") throw new TypeError("request needs a callback");
  const run = callback as (lock: HeldLock | null) => T;
  return { options: typeof first === "function" ? {} : (first ?? {}), run };
}

type Leasing = Pick<Wanted, "ttlMs" | "minHoldMs" | "maxHoldMs" | "graceMs">;

/** Checks lease options alone; `connect` does so with its defaults. */
export function checkLease(given: LeaseOptions, defaults: LeaseOptions, traits: Traits): Leasing {
  const ttlMs = between("ttlMs", given.ttlMs ?? defaults.ttlMs ?? DEFAULT_TTL_MS, SHORTEST_TTL_MS, LONGEST_TTL_MS);
  const minHoldMs = between("minHoldMs", given.minHoldMs ?? defaults.minHoldMs ?? 0, 0, LONGEST_TTL_MS);
  const maxHoldMs = given.maxHoldMs ?? defaults.maxHoldMs ?? Infinity;
  if (maxHoldMs !== Infinity) between("maxHoldMs", maxHoldMs, 1, Number.MAX_SAFE_INTEGER);
  const graceMs = between("graceMs", given.graceMs ?? defaults.graceMs ?? 0, 0, LONGEST_TTL_MS);
  if (graceMs > ttlMs / 2) {
    throw new ConfigError(
      `graceMs (${graceMs}) must be at most half of ttlMs (${ttlMs}): the other half is for renewing`,
    );
  }
  if (minHoldMs > 0 && !traits.minHold) {
    throw new ConfigError(`the ${traits.engine} engine cannot keep a place without an owner: minHoldMs is not offered`);
  }
  return { ttlMs, minHoldMs, maxHoldMs, graceMs };
}

function wait(waitMs: number | undefined): number {
  if (waitMs === undefined || waitMs === Infinity) return Infinity;
  return between("waitMs", waitMs, 0, Number.MAX_SAFE_INTEGER);
}

function between(option: string, value: unknown, least: number, most: number): number {
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    throw new ConfigError(
      `${option} must be a number of milliseconds from ${least} to ${most}, not ${describe(value)}`,
    );
  }
  return value;
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : String(value);
}
