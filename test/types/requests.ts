/** The overloads of `request`, and the options. Compiled, never run. */
import {
  connect,
  type AcquireOptions,
  type HeldLock,
  type LeaseOptions,
  type LockManager,
  type LockMode,
  type RequestOptions,
  type TryOptions,
} from "../../src/index.ts";
import { memory } from "../../src/engines/memory/index.ts";

const locks: LockManager = await connect(memory(), { ttlMs: 10_000, graceMs: undefined });

// Resolves to what the callback returns, awaited.
export const number: number = await locks.request("name", () => 1);
export const awaited: string = await locks.request("name", async () => "text");
export const nothing: void = await locks.request("name", () => {});

// The lock is there, unless it was asked for only if available.
await locks.request("name", (lock) => lock.token);
await locks.request("name", { mode: "shared" }, (lock) => lock.token);
await locks.request("name", { steal: true }, (lock) => lock.token);
await locks.request("name", { ifAvailable: false }, (lock) => lock.token);
await locks.request("name", { ifAvailable: true }, (lock) => lock?.token);
// @ts-expect-error It may be null.
await locks.request("name", { ifAvailable: true }, (lock) => lock.token);
declare const flag: boolean;
// @ts-expect-error It may be null when the flag is set.
await locks.request("name", { ifAvailable: flag }, (lock) => lock.token);
declare const options: RequestOptions;
// @ts-expect-error Options that are not known may ask for it.
await locks.request("name", options, (lock) => lock.token);

// @ts-expect-error A callback is needed.
await locks.request("name");
// @ts-expect-error
await locks.request("name", { mode: "shared" });
// @ts-expect-error There are two modes.
await locks.request("name", { mode: "upgrade" }, () => {});
// @ts-expect-error `signal: null` is a TypeError, and shows before.
await locks.request("name", { signal: null }, () => {});

// Undefined is as good as absent, for every option.
const signal: AbortSignal | undefined = flag ? AbortSignal.timeout(5) : undefined;
export const acquired: HeldLock = await locks.acquire("name", { waitMs: undefined, signal, mode: undefined });
const none: Record<keyof RequestOptions, undefined> = {
  ttlMs: undefined,
  minHoldMs: undefined,
  maxHoldMs: undefined,
  graceMs: undefined,
  mode: undefined,
  waitMs: undefined,
  signal: undefined,
  ifAvailable: undefined,
  steal: undefined,
};
await locks.request("name", none, () => {});

// Each form takes what it can use, and nothing else.
export const tried: HeldLock | null = await locks.tryAcquire("name", { mode: "shared", ttlMs: 1_000 });
// @ts-expect-error It does not wait.
await locks.tryAcquire("name", { waitMs: 5 });
// @ts-expect-error It does not wait.
await locks.tryAcquire("name", { signal });
// @ts-expect-error Stealing is for the scoped form.
await locks.acquire("name", { steal: true });
// @ts-expect-error tryAcquire does that.
await locks.acquire("name", { ifAvailable: true });
// @ts-expect-error Waiting is not a default of a connection.
await connect("memory:", { waitMs: 5 });

// Wider options may be handed to whoever takes narrower ones.
declare const lease: LeaseOptions;
export const attempt: TryOptions = lease;
export const wait: AcquireOptions = attempt;
export const mode: LockMode = "exclusive";

// @ts-expect-error A token is a bigint.
await locks.evict("name", 1);
export const evicted: boolean = await locks.evict("name", 1n);
export const { held, pending } = await locks.query({ prefix: "a", limit: undefined });
