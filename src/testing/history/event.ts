/**
 * What a history consists of: who asked for what, and what came of it. One JSON object a line, one file a process. An
 * event without its completion has an unknown outcome: the process was killed, or the history ends there.
 */
import type { LockMode } from "../../index.ts";

/** When, in ms of the machine's monotonic clock (the same for all processes since it booted), and who tells. */
interface Told {
  readonly atMs: number;
  readonly process: string;
}

/** Before the lock is asked for. `id` is unique in the history. */
export interface Requested extends Told {
  readonly kind: "requested";
  readonly id: string;
  readonly name: string;
  readonly mode: LockMode;
  /** How many shared holders there may be at once; null: any number. */
  readonly limit: number | null;
}

/** Somebody saw the request in the engine's queue: whoever asks later stands behind it. */
export interface Queued extends Told {
  readonly kind: "queued";
  readonly id: string;
}

export interface Granted extends Told {
  readonly kind: "granted";
  readonly id: string;
  /** Decimal; null for a lock that has none. */
  readonly token: string | null;
  /** The deadline as the holder knows it; null: it relies on the lock for ever. */
  readonly untilMs: number | null;
}

/** The holder looked: it still holds, until then. */
export interface Held extends Told {
  readonly kind: "held";
  readonly id: string;
  readonly untilMs: number;
}

/** The holder was told, or found, that it holds no more. */
export interface Lost extends Told {
  readonly kind: "lost";
  readonly id: string;
  readonly why: string;
}

/** Before the lock is given back: from now on the holder relies on nothing. */
export interface Releasing extends Told {
  readonly kind: "releasing";
  readonly id: string;
}

export interface Released extends Told {
  readonly kind: "released";
  readonly id: string;
}

/** The request ended without a grant: busy, time-out, abort, an error. */
export interface Refused extends Told {
  readonly kind: "refused";
  readonly id: string;
  readonly why: string;
}

/** Before a fenced write under the grant of `id`. `write` is unique in the history. */
export interface Writing extends Told {
  readonly kind: "writing";
  readonly id: string;
  readonly write: string;
  readonly resource: string;
}

/** The guard's answer; none: unknown. */
export interface Written extends Told {
  readonly kind: "written";
  readonly write: string;
  readonly accepted: boolean;
}

/** What the resource itself remembers: the writes that took effect, in their order. */
export interface Applied extends Told {
  readonly kind: "applied";
  readonly resource: string;
  readonly write: string;
}

/** Before a process is killed: nothing that it held or wanted counts from now on. */
export interface Killed extends Told {
  readonly kind: "killed";
  readonly victim: string;
}

/** A process does not run: stopped, or its event loop is blocked. */
export interface Stopped extends Told {
  readonly kind: "stopped";
  readonly victim: string;
}

export interface Resumed extends Told {
  readonly kind: "resumed";
  readonly victim: string;
}

/** The engine or the way to it is disturbed until `calmed` with the same `fault`: nobody has to be served in time. */
export interface Disturbed extends Told {
  readonly kind: "disturbed";
  readonly fault: string;
  readonly what: string;
  /** The fault breaks an assumption under which exclusion is promised. */
  readonly breaksExclusion: boolean;
}

export interface Calmed extends Told {
  readonly kind: "calmed";
  readonly fault: string;
}

/** Everything up to here has been told: whoever waits still waits. */
export interface Ended extends Told {
  readonly kind: "ended";
}

export type HistoryEvent =
  | Requested
  | Queued
  | Granted
  | Held
  | Lost
  | Releasing
  | Released
  | Refused
  | Writing
  | Written
  | Applied
  | Killed
  | Stopped
  | Resumed
  | Disturbed
  | Calmed
  | Ended;

/** An event as its teller gives it: time and teller are added. */
export type Untold<E> = E extends HistoryEvent ? Omit<E, keyof Told> : never;
