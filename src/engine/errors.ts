/** Every error of the library, with a literal `code` to decide by. Nobody needs to read a message. */

export type ErrorCode =
  | "LOCK_TIMEOUT"
  | "LOCK_LOST"
  | "LOCK_STOLEN"
  | "STALE_TOKEN"
  | "ENGINE_UNAVAILABLE"
  | "CONFIG"
  | "CLOSED"
  | "NOT_SUPPORTED";

/** Why a held lock is ours no more. */
export type LossReason = "expired" | "stolen" | "evicted" | "session" | "max-hold" | "closed";

export class HoldfastError extends Error {
  override readonly name: string = "HoldfastError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** `waitMs` passed before the lock was granted. The request has left the queue or is leaving it. */
export class LockTimeoutError extends HoldfastError {
  override readonly name: string = "TimeoutError";
  readonly lockName: string;

  constructor(lockName: string, waitMs: number) {
    super("LOCK_TIMEOUT", `lock ${JSON.stringify(lockName)} was not granted within ${waitMs} ms`);
    this.lockName = lockName;
  }
}

const LOSS_TEXT: Record<LossReason, string> = {
  expired: "its lease ran out before a renewal was confirmed",
  stolen: "another request stole it",
  evicted: "it was evicted by hand",
  session: "the session with the server ended",
  "max-hold": "it was held for maxHoldMs",
  closed: "its lock manager was closed",
};

/** The lock was lost before it was released: somebody else may hold it by now. `reason` says why. */
export class LockLostError extends HoldfastError {
  override readonly name: string = "LockLostError";
  readonly lockName: string;
  readonly reason: LossReason;

  constructor(lockName: string, reason: LossReason, options?: ErrorOptions) {
    super(
      reason === "stolen" ? "LOCK_STOLEN" : "LOCK_LOST",
      `lock ${JSON.stringify(lockName)} was lost: ${LOSS_TEXT[reason]}`,
      options,
    );
    this.lockName = lockName;
    this.reason = reason;
  }
}

/** The lock was taken away by a request with `steal: true`. */
export class LockStolenError extends LockLostError {
  override readonly name: string = "LockStolenError";

  constructor(lockName: string, options?: ErrorOptions) {
    super(lockName, "stolen", options);
  }
}

export function lossError(lockName: string, reason: LossReason, options?: ErrorOptions): LockLostError {
  return reason === "stolen" ? new LockStolenError(lockName, options) : new LockLostError(lockName, reason, options);
}

/** A guard has seen a higher token: the writer held the lock in the past. */
export class StaleTokenError extends HoldfastError {
  override readonly name: string = "StaleTokenError";
  /** What was to be read or written. */
  readonly resource: string;
  readonly token: bigint;
  /** The latest token that the guard has seen; undefined where it did not say. */
  readonly seen: bigint | undefined;

  constructor(resource: string, token: bigint, seen?: bigint, options?: ErrorOptions) {
    const later = seen === undefined ? "a later holder has been here" : `the holder of token ${seen} has been here`;
    super("STALE_TOKEN", `${JSON.stringify(resource)} refuses token ${token}: ${later}`, options);
    this.resource = resource;
    this.token = token;
    this.seen = seen;
  }
}

/** The engine cannot be reached, or did not answer in time. What was asked may or may not have happened. */
export class EngineUnavailableError extends HoldfastError {
  override readonly name: string = "EngineUnavailableError";

  constructor(message: string, options?: ErrorOptions) {
    super("ENGINE_UNAVAILABLE", message, options);
  }
}

/** The call, the URL or the server's settings are wrong; the message says what to change. Trying again does not help. */
export class ConfigError extends HoldfastError {
  override readonly name: string = "ConfigError";

  constructor(message: string, options?: ErrorOptions) {
    super("CONFIG", message, options);
  }
}

/** The lock manager was closed. */
export class ClosedError extends HoldfastError {
  override readonly name: string = "ClosedError";

  constructor(message = "this lock manager is closed") {
    super("CLOSED", message);
  }
}

/** A combination that the Web Locks API refuses too: `name` is "NotSupportedError", as there. */
export class NotSupportedError extends HoldfastError {
  override readonly name: string = "NotSupportedError";

  constructor(message: string) {
    super("NOT_SUPPORTED", message);
  }
}
