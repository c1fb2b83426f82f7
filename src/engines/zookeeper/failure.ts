/** What errors of the client mean to a lock. */
import { ClosedError, ConfigError, EngineUnavailableError, HoldfastError } from "../../engine/errors.ts";
import { ConnectionLossError, ZooKeeperError, type ZooKeeperErrorCode } from "../../zookeeper/index.ts";

const SETTINGS = new Set<ZooKeeperErrorCode>([
  "NO_AUTH",
  "AUTH_FAILED",
  "INVALID_ACL",
  "SASL_REQUIRED",
  "QUOTA_EXCEEDED",
  "UNIMPLEMENTED",
  "NO_CHILDREN_FOR_EPHEMERALS",
  "INVALID_ARGUMENT",
  "PACKET_TOO_LARGE",
]);

export function hasCode(error: unknown, code: ZooKeeperErrorCode): boolean {
  return error instanceof ZooKeeperError && error.code === code;
}

/** It was sent, and nobody knows whether it was applied. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ConnectionLossError && error.outcome === "unknown";
}

/** The session has ended: whatever belonged to it is gone or going. */
export function isSessionOver(error: unknown): boolean {
  return hasCode(error, "SESSION_EXPIRED") || hasCode(error, "CLOSED");
}

/** The library's error for one of the client. */
export function failureOf(error: unknown): unknown {
  if (error instanceof HoldfastError || !(error instanceof ZooKeeperError)) return error;
  if (error.code === "CLOSED") return new ClosedError();
  if (SETTINGS.has(error.code)) {
    return new ConfigError(`ZooKeeper refuses: ${error.message}`, { cause: error });
  }
  return new EngineUnavailableError(`ZooKeeper: ${error.message}`, { cause: error });
}
