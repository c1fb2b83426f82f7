/**
 * The arithmetic of a lease on the holder's side. No clock of a server is ever compared with ours: a deadline is the
 * local instant before the last acknowledged command was sent + the TTL that it set − a margin.
 */
import type { Instant } from "./clock.ts";
import type { Lease } from "./engine.ts";

const MARGIN_SHARE = 0.01;
const MARGIN_MS = 2;
const PENDING_TTL_MS = 10_000;

/** What is subtracted from a TTL for clocks that run at different rates: 1 % + 2 ms. */
export function marginMs(ttlMs: number): number {
  return ttlMs * MARGIN_SHARE + MARGIN_MS;
}

/** The TTL of a request while it is pending: min(`ttlMs`, max(10 s, 3 × `graceMs`)). A dead waiter then costs little. */
export function pendingTtlMs(ttlMs: number, graceMs: number): number {
  return Math.min(ttlMs, Math.max(PENDING_TTL_MS, 3 * graceMs));
}

/** The monotonic instant at which the lease is over for its holder, in ms of the same clock. */
export function deadlineMs(lease: Lease): number {
  return lease.from.monoMs + lease.ttlMs - marginMs(lease.ttlMs);
}

/**
 * What is left of the lease at `now`, in ms; 0 or less when it is over. Elapsed time is the larger of what the two
 * clocks say: a suspended machine stops the monotonic one.
 */
export function remainingMs(lease: Lease, now: Instant): number {
  const elapsed = Math.max(now.monoMs - lease.from.monoMs, now.wallMs - lease.from.wallMs);
  return lease.ttlMs - marginMs(lease.ttlMs) - elapsed;
}

/** Whether the two clocks disagree about the time since the lease began by more than the margin. */
export function isUncertain(lease: Lease, now: Instant): boolean {
  const monotonic = now.monoMs - lease.from.monoMs;
  const wall = now.wallMs - lease.from.wallMs;
  return Math.abs(wall - monotonic) > marginMs(lease.ttlMs);
}

/** The lease that ends later: a command that is acknowledged late never shortens one. Of two equals the newer, `right`. */
export function laterLease(left: Lease, right: Lease): Lease {
  return deadlineMs(left) > deadlineMs(right) ? left : right;
}
