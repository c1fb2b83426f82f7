/** The options of a client: defaults, limits, checks. */
import { type Clock, systemClock } from "../engine/clock.ts";
import type { Credential } from "./credentials.ts";
import { invalidArgument } from "./errors.ts";
import { parseConnectionString } from "./hosts.ts";
import { Chroot } from "./paths.ts";
import { DEFAULT_MAX_PACKET_BYTES, DEFAULT_MAX_REPLY_BYTES, PASSWORD_BYTES } from "./protocol.ts";
import type { SessionIdentity, SessionOptions } from "./session.ts";
import { openSocket, type OpenWire, type TlsOptions } from "./socket.ts";

export interface ClientOptions {
  /**
   * How long the servers keep the session without a sign of life; 1,000 … 3,600,000 ms. They may agree to less or more
   * (`sessionTimeoutMs` of the client tells). Default 30,000 ms.
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * How much earlier than the time-out the session may be over although a server still answers: a follower that has lost
   * its leader notices only after (syncLimit + 1) × tickTime, 12,000 ms with the server's defaults. Pings, read time-out and
   * the local session deadline then use time-out − this. Default 0: right for a standalone server, and wherever nothing
   * depends on learning of the expiry in time.
   */
  readonly leaderLagMs?: number | undefined;
  /** `connect` rejects when no server has answered within so long. Default: `sessionTimeoutMs`. */
  readonly connectWithinMs?: number | undefined;
  /** TLS to every server. Default: none. */
  readonly tls?: TlsOptions | undefined;
  /** Who we are, from the first packet on: digest credentials as `{ scheme: "digest", secret: "user:password" }`. */
  readonly auth?: readonly AuthOptions[] | undefined;
  /** Goes on with an existing session in place of a new one. The server closes that session's other connection. */
  readonly session?: SessionIdentity | undefined;
  /** The server's `jute.maxbuffer`: larger requests are refused here, clearly. Default 1,048,575 bytes. */
  readonly maxPacketBytes?: number | undefined;
  /** Larger replies end the connection. Default 64 MiB. */
  readonly maxReplyBytes?: number | undefined;
  /** How many requests may wait for their answer, sent or not. Default 100,000. */
  readonly maxRequests?: number | undefined;
  /**
   * A ping goes out when the oldest request is unanswered for so long: frees answers that servers before 3.8.1 hold back
   * (ZOOKEEPER-4537). Default 75 ms; 0 switches it off.
   */
  readonly nudgeMs?: number | undefined;
  /** `connect` rejects with its reason when it aborts first. */
  readonly signal?: AbortSignal | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
  /** For tests: what stands in the place of a socket. */
  readonly openWire?: OpenWire | undefined;
}

export interface AuthOptions {
  readonly scheme: string;
  readonly secret: string | Uint8Array;
}

const DEFAULT_SESSION_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_REQUESTS = 100_000;
const DEFAULT_NUDGE_MS = 75;
export const LARGEST_LAG_SHARE = 0.9;

export function sessionOptions(servers: string, options: ClientOptions): { session: SessionOptions; chroot: Chroot } {
  const { hosts, chroot: prefix } = parseConnectionString(servers);
  const chroot = new Chroot(prefix);
  const sessionTimeoutMs = within(
    "sessionTimeoutMs",
    options.sessionTimeoutMs,
    DEFAULT_SESSION_TIMEOUT_MS,
    1_000,
    3_600_000,
  );
  if (options.session !== undefined && options.session.password.length !== PASSWORD_BYTES) {
    throw invalidArgument(`a session's password has ${PASSWORD_BYTES} bytes`);
  }
  const session: SessionOptions = {
    hosts,
    sessionTimeoutMs,
    leaderLagMs: within("leaderLagMs", options.leaderLagMs, 0, 0, sessionTimeoutMs * LARGEST_LAG_SHARE),
    connectWithinMs: within("connectWithinMs", options.connectWithinMs, sessionTimeoutMs, 1, 3_600_000),
    tls: options.tls,
    openWire: options.openWire ?? openSocket,
    auth: (options.auth ?? []).map(credential),
    identity: options.session,
    maxPacketBytes: within("maxPacketBytes", options.maxPacketBytes, DEFAULT_MAX_PACKET_BYTES, 1_024, 2 ** 31 - 1),
    maxReplyBytes: within("maxReplyBytes", options.maxReplyBytes, DEFAULT_MAX_REPLY_BYTES, 1_024, 2 ** 31 - 1),
    maxRequests: within("maxRequests", options.maxRequests, DEFAULT_MAX_REQUESTS, 1, 10_000_000),
    nudgeMs: within("nudgeMs", options.nudgeMs, DEFAULT_NUDGE_MS, 0, 60_000),
    clock: options.clock ?? systemClock,
    showPath: (path) => chroot.toClient(path),
  };
  return { session, chroot };
}

export function credential({ scheme, secret }: AuthOptions): Credential {
  if (scheme === "") throw invalidArgument("an authentication scheme must not be empty");
  return { scheme, secret: typeof secret === "string" ? Buffer.from(secret) : secret };
}

function within(name: string, value: number | undefined, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback;
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    throw invalidArgument(`${name} is ${String(value)}, it must be ${least} … ${most}`);
  }
  return value;
}
