/** Who holds and who waits, for people. */
import type { LockInfo, LockManager } from "../index.ts";
import { printable } from "./shell-words.ts";

/** More holders than this of one name are not of interest in one line. */
const ENOUGH = 100;

/** "held by web-1:4711 since 2026-01-31T03:00:00Z", or undefined when it is free by now or cannot be asked. */
export async function describeHolder(locks: LockManager, name: string): Promise<string | undefined> {
  const { held, pending } = await locks.query({ name, limit: ENOUGH });
  const [first] = held;
  if (first !== undefined) {
    const others = held.length > 1 ? ` and ${held.length - 1} more` : "";
    return `held by ${place(first)} since ${isoTime(first.sinceMs)}${others}`;
  }
  const [ahead] = pending;
  return ahead === undefined ? undefined : `waited for by ${place(ahead)} since ${isoTime(ahead.sinceMs)}`;
}

export function place({ host, pid }: LockInfo): string {
  return `${printable(host)}:${pid}`;
}

/** To the second: more would only look exact. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
