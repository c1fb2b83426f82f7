/** The errors of the ZooKeeper client, each with a literal `code`. Nobody needs to read a message to decide. */

/** What the server's numbers mean. Source: `KeeperException.Code` of Apache ZooKeeper. */
const SERVER_CODES = {
  [-1]: "SYSTEM_ERROR",
  [-2]: "RUNTIME_INCONSISTENCY",
  [-3]: "DATA_INCONSISTENCY",
  [-4]: "CONNECTION_LOSS",
  [-5]: "MARSHALLING_ERROR",
  [-6]: "UNIMPLEMENTED",
  [-7]: "OPERATION_TIMEOUT",
  [-8]: "BAD_ARGUMENTS",
  [-13]: "NEW_CONFIG_NO_QUORUM",
  [-14]: "RECONFIG_IN_PROGRESS",
  [-100]: "API_ERROR",
  [-101]: "NO_NODE",
  [-102]: "NO_AUTH",
  [-103]: "BAD_VERSION",
  [-108]: "NO_CHILDREN_FOR_EPHEMERALS",
  [-110]: "NODE_EXISTS",
  [-111]: "NOT_EMPTY",
  [-112]: "SESSION_EXPIRED",
  [-113]: "INVALID_CALLBACK",
  [-114]: "INVALID_ACL",
  [-115]: "AUTH_FAILED",
  [-118]: "SESSION_MOVED",
  [-119]: "NOT_READ_ONLY",
  [-120]: "EPHEMERAL_ON_LOCAL_SESSION",
  [-121]: "NO_WATCHER",
  [-122]: "REQUEST_TIMEOUT",
  [-123]: "RECONFIG_DISABLED",
  [-124]: "SASL_REQUIRED",
  [-125]: "QUOTA_EXCEEDED",
  [-127]: "THROTTLED",
} as const;

type ServerErrorCode = (typeof SERVER_CODES)[keyof typeof SERVER_CODES];

export type ZooKeeperErrorCode =
  | ServerErrorCode
  /** A number that this client does not know; see `serverCode`. */
  | "UNKNOWN_SERVER_ERROR"
  /** The client was closed. */
  | "CLOSED"
  /** No server could be reached in time. */
  | "UNREACHABLE"
  /** What came from the server cannot be understood; the connection is dropped. */
  | "PROTOCOL_ERROR"
  /** A request over `maxPacketBytes`, or a reply over `maxReplyBytes`. */
  | "PACKET_TOO_LARGE"
  /** Too many requests wait for their answer. */
  | "TOO_MANY_REQUESTS"
  /** An option or an argument is wrong. */
  | "INVALID_ARGUMENT";

export const NO_NODE = -101;

export function codeOf(serverCode: number): ZooKeeperErrorCode {
  return SERVER_CODES[serverCode as keyof typeof SERVER_CODES] ?? "UNKNOWN_SERVER_ERROR";
}

export interface ZooKeeperErrorDetails extends ErrorOptions {
  readonly path?: string | undefined;
  readonly serverCode?: number | undefined;
}

export class ZooKeeperError extends Error {
  override readonly name: string = "ZooKeeperError";
  readonly code: ZooKeeperErrorCode;
  /** The path of the request, as the caller gave it. */
  readonly path: string | undefined;
  /** The number that the server sent, if it was the server. */
  readonly serverCode: number | undefined;

  constructor(code: ZooKeeperErrorCode, message: string, details: ZooKeeperErrorDetails = {}) {
    super(message, details);
    this.code = code;
    this.path = details.path;
    this.serverCode = details.serverCode;
  }
}

/**
 * The connection ended before the answer came.
 *
 * `outcome` is "unknown" when the request had been sent and changes something: it may or may not have been applied, and a
 * create may have left a node. It is "not-applied" when the request never left this process, or reads only.
 */
export class ConnectionLossError extends ZooKeeperError {
  override readonly name: string = "ConnectionLossError";
  readonly outcome: "unknown" | "not-applied";

  constructor(label: string, outcome: "unknown" | "not-applied", details: ZooKeeperErrorDetails = {}) {
    const what = outcome === "unknown" ? "whether it was applied is unknown" : "it was not applied";
    super("CONNECTION_LOSS", `${label}: the connection was lost before the answer; ${what}`, details);
    this.outcome = outcome;
  }
}

/** The session is over: its ephemeral nodes are gone or going, its watches will not fire. Connect again for a new one. */
export class SessionExpiredError extends ZooKeeperError {
  override readonly name: string = "SessionExpiredError";

  constructor(details: ZooKeeperErrorDetails = {}) {
    super("SESSION_EXPIRED", "the ZooKeeper session has expired", details);
  }
}

export class ProtocolError extends ZooKeeperError {
  override readonly name: string = "ProtocolError";

  constructor(message: string, details: ZooKeeperErrorDetails = {}) {
    super("PROTOCOL_ERROR", message, details);
  }
}

/** The error for a negative number in a reply. */
export function serverError(serverCode: number, label: string, path: string | undefined): ZooKeeperError {
  if (serverCode === -112) return new SessionExpiredError({ path, serverCode });
  const code = codeOf(serverCode);
  return new ZooKeeperError(code, `${label}: ${code} (${serverCode})`, { path, serverCode });
}

export function invalidArgument(message: string): ZooKeeperError {
  return new ZooKeeperError("INVALID_ARGUMENT", message);
}
