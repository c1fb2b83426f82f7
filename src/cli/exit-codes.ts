/** What the command line ends with, and the errors that carry it. */
import type { ErrorCode } from "../engine/errors.ts";

export const EXIT = {
  ok: 0,
  /** `evict` found no such holder; or a defect of ours. */
  failure: 1,
  usage: 64,
  unreachable: 69,
  lost: 70,
  busy: 75,
  config: 78,
  maxHold: 124,
  cannotExecute: 126,
  notFound: 127,
  /** + the number of the signal. */
  signal: 128,
} as const;

/** Ends the program with `exitCode`, after `holdfast: message` on standard error. */
export class Failure extends Error {
  override readonly name: string = "Failure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Ends the program quietly: everything has been said, or nothing is to be said. */
export class QuietExit extends Failure {
  override readonly name: string = "QuietExit";

  constructor(exitCode: number) {
    super(exitCode, "");
  }
}

const CODES: Record<ErrorCode, number> = {
  LOCK_TIMEOUT: EXIT.busy,
  LOCK_LOST: EXIT.lost,
  LOCK_STOLEN: EXIT.lost,
  STALE_TOKEN: EXIT.lost,
  ENGINE_UNAVAILABLE: EXIT.unreachable,
  CONFIG: EXIT.config,
  CLOSED: EXIT.config,
  NOT_SUPPORTED: EXIT.usage,
};

/** The exit code for an error of ours or of the library. Anything else is a defect of ours. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return (CODES as Partial<Record<string, number>>)[code] ?? EXIT.failure;
}
