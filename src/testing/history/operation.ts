/** What a history says of each request, each write and each disturbance. */
import type { LockMode } from "../../index.ts";

export type Ending = "released" | "lost" | "deadline" | "killed" | "open";

export interface Operation {
  readonly id: string;
  readonly process: string;
  readonly name: string;
  readonly mode: LockMode;
  /** `Infinity` for readers, 1 for exclusive ones. */
  readonly limit: number;
  readonly requestedAtMs: number;
  /** When somebody saw it in the queue. */
  queuedAtMs: number | undefined;
  grantedAtMs: number | undefined;
  token: bigint | undefined;
  /** The deadline as the holder last knew it; `Infinity` when it relied on the lock for ever. */
  untilMs: number;
  lost: { readonly atMs: number; readonly why: string } | undefined;
  releasingAtMs: number | undefined;
  releasedAtMs: number | undefined;
  refused: { readonly atMs: number; readonly why: string } | undefined;
  /** When its process was killed, if that was before anything else had ended it. */
  killedAtMs: number | undefined;
}

/** A fenced write. */
export interface Write {
  readonly id: string;
  readonly operation: Operation;
  readonly resource: string;
  readonly startedAtMs: number;
  answer: { readonly atMs: number; readonly accepted: boolean } | undefined;
  /** Its place in what the resource remembers; undefined: not there. */
  place: number | undefined;
}

/** A span of time in which something was wrong. */
export interface Disturbance {
  readonly what: string;
  readonly fromMs: number;
  toMs: number;
  readonly breaksExclusion: boolean;
}

export interface Absence {
  readonly process: string;
  readonly fromMs: number;
  toMs: number;
}

export interface History {
  readonly operations: readonly Operation[];
  readonly writes: readonly Write[];
  /** Resources that told what they remember. */
  readonly resources: ReadonlySet<string>;
  /** What resources remember although nobody in this history wrote it. */
  readonly strangers: readonly string[];
  readonly disturbances: readonly Disturbance[];
  readonly absences: readonly Absence[];
  readonly startMs: number;
  readonly endMs: number;
}

/** Until when the holder relied on the lock: its deadline, its loss, the beginning of its release, its death. */
export function holdEndMs({ untilMs, lost, releasingAtMs, killedAtMs }: Operation): number {
  return Math.min(untilMs, lost?.atMs ?? Infinity, releasingAtMs ?? Infinity, killedAtMs ?? Infinity);
}

export function endingOf(operation: Operation): Ending {
  const endMs = holdEndMs(operation);
  if (endMs === operation.releasingAtMs) return "released";
  if (endMs === operation.lost?.atMs) return "lost";
  if (endMs === operation.killedAtMs) return "killed";
  return endMs === Infinity ? "open" : "deadline";
}

/** Until when somebody waited for it; `Infinity`: to the end of the history. */
export function pendingEndMs({ grantedAtMs, refused, killedAtMs }: Operation): number {
  return Math.min(grantedAtMs ?? Infinity, refused?.atMs ?? Infinity, killedAtMs ?? Infinity);
}

/** The operations of each name. */
export function byName(operations: readonly Operation[]): Map<string, Operation[]> {
  const names = new Map<string, Operation[]>();
  for (const operation of operations) {
    const list = names.get(operation.name);
    if (list === undefined) names.set(operation.name, [operation]);
    else list.push(operation);
  }
  return names;
}
