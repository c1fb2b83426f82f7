/** What cases ask of promises and of time. Bounds are generous: a busy machine is no broken promise. */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../engine/clock.ts";
import type { ErrorCode } from "../index.ts";
import { HoldfastError } from "../index.ts";

/** Between two looks at a condition, in ms. */
const LOOK_EVERY_MS = 15;

export async function pause(ms: number): Promise<void> {
  await sleep(systemClock, ms);
}

export function nowMs(): number {
  return systemClock.monotonicMs();
}

/** Passes `promise` on, or fails when it has not settled after `ms`. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const settled = new AbortController();
  promise.then(
    () => settled.abort(),
    () => settled.abort(),
  );
  const late = sleep(systemClock, ms, settled.signal).then(
    () => assert.fail(`${what} took longer than ${ms} ms`),
    () => promise,
  );
  return await Promise.race([promise, late]);
}

/** Fails when `promise` settles within `ms`. */
export async function stillPending(ms: number, what: string, promise: Promise<unknown>): Promise<void> {
  const early = promise.then(
    () => assert.fail(`${what} did not wait`),
    (error: unknown) => assert.fail(`${what} did not wait: ${String(error)}`),
  );
  await Promise.race([early, pause(ms)]);
}

/** Waits until `condition` says true; fails after `ms`. */
export async function eventually(ms: number, what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const untilMs = nowMs() + ms;
  while (!(await condition())) {
    assert.ok(nowMs() < untilMs, `${what}: not so after ${ms} ms`);
    await pause(LOOK_EVERY_MS);
  }
}

/** Resolves to the milliseconds that `action` took. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const startMs = nowMs();
  await action();
  return nowMs() - startMs;
}

/** Fails unless `promise` rejects with an error of the library that has `code`; resolves to that error. */
export function rejectsWith(code: ErrorCode, promise: Promise<unknown>): Promise<HoldfastError> {
  return asked(
    rejection(promise).then((error) => {
      assert.ok(error instanceof HoldfastError, `rejected with ${String(error)}, which is no HoldfastError`);
      assert.equal(error.code, code, `rejected with ${String(error)}`);
      return error;
    }),
  );
}

/** Fails unless `promise` rejects; resolves to the reason, whatever it is. */
export function rejection(promise: Promise<unknown>): Promise<unknown> {
  return asked(
    promise.then(
      (value) => assert.fail(`resolved to ${String(value)} instead of rejecting`),
      (error: unknown) => error,
    ),
  );
}

/** The same promise; a case that has failed before it looked at it does not fail a second time by it. */
function asked<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** `call` must not throw: errors of a promise-returning function are rejections. */
export function neverThrows<T>(call: () => Promise<T>): Promise<T> {
  let promise: Promise<T>;
  try {
    promise = call();
  } catch (error) {
    return assert.fail(`threw ${String(error)} instead of rejecting`);
  }
  return promise;
}

/** Collects what reaches nobody: rejections that float, errors that no listener takes. */
export function unhandledErrors(): { end(): readonly unknown[] } {
  const errors: unknown[] = [];
  const note = (error: unknown): void => void errors.push(error);
  const events = ["unhandledRejection", "uncaughtExceptionMonitor"] as const;
  for (const event of events) process.on(event, note);
  return {
    end: () => {
      for (const event of events) process.off(event, note);
      return errors;
    },
  };
}

/** Resolves when `signal` aborts; to its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}
