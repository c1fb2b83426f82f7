/** What the incident tests need: a private server, connections that are closed afterwards, and a way to look inside. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis, type RedisServer, type RedisServerOptions } from "../../../servers/redis.ts";
import { redis, type RedisOptions } from "../../../src/engines/redis/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";

export { sleep };

/** A server that ends with the test. */
export async function server(t: TestContext, options: RedisServerOptions = {}): Promise<RedisServer> {
  const started = await startRedis(options);
  t.after(() => started.stop());
  return started;
}

/** A lock manager that is closed with the test, before its server ends. */
export async function locksOn(
  t: TestContext,
  url: string | RedisServer,
  options: Omit<RedisOptions, "url"> = {},
  defaults?: LeaseOptions,
): Promise<LockManager> {
  const engine = redis({ url: typeof url === "string" ? url : url.url, commandTimeoutMs: 2_000, ...options });
  const locks = await connect(engine, defaults);
  closing(t, () => locks.close());
  return locks;
}

const closers = new WeakMap<TestContext, (() => Promise<void>)[]>();

/** `after` hooks run in the order in which they were added; what is opened last has to be closed first. */
function closing(t: TestContext, close: () => Promise<void>): void {
  const list = closers.get(t);
  if (list === undefined) closers.set(t, [close]);
  else list.push(close);
}

/** Runs `body` and then closes what `locksOn` opened, also when it fails. */
export function incident(body: (t: TestContext) => Promise<void>): (t: TestContext) => Promise<void> {
  return async (t) => {
    try {
      await body(t);
    } finally {
      await Promise.all((closers.get(t) ?? []).map((close) => close()));
    }
  };
}

export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  timeoutMs = 15_000,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check())) {
    assert.ok(performance.now() < end, `${what}: not so within ${timeoutMs} ms`);
    await sleep(10);
  }
}

/** How many pending requests the name has. */
export async function pending(locks: LockManager, name: string): Promise<number> {
  return (await locks.query({ prefix: name })).pending.length;
}

/** What the promise settles to within `ms`, for races with servers that are gone. */
export async function within<T>(what: string, ms: number, promise: Promise<T>): Promise<T> {
  const late = Symbol("late");
  const outcome = await Promise.race([promise, sleep(ms, late, { ref: false })]);
  assert.ok(outcome !== late, `${what} took longer than ${ms} ms`);
  return outcome;
}

/** Resolves with the reason when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

/** Script calls that the server has carried out so far. */
export async function scriptCalls(of: RedisServer): Promise<number> {
  const stats = String(await of.command("INFO", "commandstats"));
  const calls = stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm);
  return [...calls].reduce((sum, each) => sum + Number(each[1]), 0);
}
