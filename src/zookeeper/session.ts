/**
 * A session: it outlives connections. Goes from server to server, attaches again with its password, sets its watches again,
 * and knows how long it may trust that the servers still count it as alive.
 */
import { type Clock, instant, type Instant, sleep, type Timer } from "../engine/clock.ts";
import { Connection } from "./connection.ts";
import { type Credential, Credentials } from "./credentials.ts";
import { SessionExpiredError, ZooKeeperError } from "./errors.ts";
import { type Host, HostRing, hostText } from "./hosts.ts";
import { closeSession, type Operation } from "./operations.ts";
import { type ConnectResponse, NO_PASSWORD } from "./records.ts";
import { RequestLine } from "./request-line.ts";
import type { OpenWire, TlsOptions } from "./socket.ts";
import { type SessionTiming, sessionTiming } from "./timing.ts";
import { Watches } from "./watches.ts";

/**
 * - "connecting": no server has answered yet;
 * - "connected";
 * - "suspended": the connection was lost and another is being sought; the session may live on, or not;
 * - "expired": the servers have ended the session; final;
 * - "closed": ended from our side, or nobody could be reached at the start; final.
 */
export type SessionState = "connecting" | "connected" | "suspended" | "expired" | "closed";

/** With these, any connection may go on with the session. */
export interface SessionIdentity {
  readonly id: bigint;
  readonly password: Uint8Array;
}

export interface SessionOptions {
  readonly hosts: readonly Host[];
  readonly tls: TlsOptions | undefined;
  readonly openWire: OpenWire;
  readonly clock: Clock;
  readonly sessionTimeoutMs: number;
  readonly leaderLagMs: number;
  readonly connectWithinMs: number;
  readonly identity: SessionIdentity | undefined;
  readonly auth: readonly Credential[];
  readonly maxPacketBytes: number;
  readonly maxReplyBytes: number;
  readonly maxRequests: number;
  readonly nudgeMs: number;
  readonly showPath: (path: string) => string;
}

export interface SubmitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Another request follows in this turn and may go out in the same write. */
  readonly more?: boolean | undefined;
}

const FIRST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 1_000;
const CLOSE_WITHIN_MS = 2_000;
/** How often it is looked whether a request has waited too long for a connection, as a share of what is too long. */
const WAIT_STEPS = 10;

export class Session {
  readonly watches: Watches;
  readonly #options: SessionOptions;
  readonly #ring: HostRing;
  readonly #line: RequestLine;
  readonly #credentials: Credentials;
  readonly #listeners = new Set<(state: SessionState) => void>();
  readonly #over = new AbortController();
  #state: SessionState = "connecting";
  #endedBy: ZooKeeperError | undefined;
  #identity: SessionIdentity;
  #timeoutMs: number;
  #leaderLagMs: number;
  #timing: SessionTiming;
  #lastZxid = 0n;
  /** The instant before the newest answered packet was sent. */
  #confirmedAt: Instant;
  #connection: Connection | undefined;
  #lastFailure: Error = new ZooKeeperError("CONNECTION_LOSS", "no server has been tried yet");
  #closing: Promise<void> | undefined;
  /** Runs while requests wait for a connection. */
  #waiting: Timer | undefined;
  #keepsAlive = true;
  #alive: Timer | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#ring = new HostRing(options.hosts, options.clock);
    this.#credentials = new Credentials(options.auth);
    this.#confirmedAt = instant(options.clock);
    this.#line = new RequestLine({ ...options, onIdle: () => this.#updateAlive() });
    this.watches = new Watches(options.showPath);
    this.#identity = options.identity ?? { id: 0n, password: NO_PASSWORD };
    this.#timeoutMs = options.sessionTimeoutMs;
    this.#leaderLagMs = options.leaderLagMs;
    this.#timing = this.#newTiming();
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The server that we are connected to. */
  get server(): string | undefined {
    return this.#connection?.attached === true ? hostText(this.#connection.host) : undefined;
  }

  get identity(): SessionIdentity {
    return this.#identity;
  }

  /** What the server agreed to. */
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** When the newest answered packet was sent. */
  get confirmedAt(): Instant {
    return this.#confirmedAt;
  }

  /** The last transaction that an answer has told of. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  get hasCredentials(): boolean {
    return this.#credentials.size > 0;
  }

  /**
   * What is left until the local session deadline, in ms; 0 or less when it has passed. Elapsed time is the larger of what
   * the two clocks say: a suspended machine stops the monotonic one.
   */
  remainingMs(): number {
    const { monoMs, wallMs } = this.#confirmedAt;
    const { clock } = this.#options;
    return this.#timing.trustMs - Math.max(clock.monotonicMs() - monoMs, clock.wallMs() - wallMs);
  }

  /** Returns what takes the listener away. */
  onState(listener: (state: SessionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when a server has given us the session and accepted who we say we are. */
  async start(signal: AbortSignal | undefined): Promise<void> {
    await this.#firstAttach(signal);
    await this.#credentials.proved;
  }

  #firstAttach(signal: AbortSignal | undefined): Promise<void> {
    const { clock, connectWithinMs } = this.#options;
    this.#updateAlive();
    return new Promise((resolve, reject) => {
      const late = clock.after(connectWithinMs, () => this.#end("closed", this.#unreachable()));
      const onAbort = (): void => this.#end("closed", closedError());
      const stop = this.onState((state) => {
        late.cancel();
        stop();
        signal?.removeEventListener("abort", onAbort);
        if (state === "connected") resolve();
        else reject(signal?.aborted === true ? signal.reason : this.#endedBy);
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      else void this.#run();
    });
  }

  submit<T>(operation: Operation<T>, { signal, more = false }: SubmitOptions = {}): Promise<T> {
    if (this.#endedBy !== undefined) return Promise.reject(this.#endedBy);
    const answer = this.#line.add(operation, this.#options.clock.monotonicMs(), signal);
    if (this.#connection?.attached === true) this.#connection.flush(more);
    else this.#limitWaiting();
    this.#updateAlive();
    return answer;
  }

  /** Proves who we are, now and after every reconnect. */
  authenticate(credential: Credential): Promise<void> {
    if (this.#endedBy !== undefined) return Promise.reject(this.#endedBy);
    const connection = this.#connection;
    return this.#credentials.add(credential, connection?.attached ? (bytes) => connection.send(bytes) : undefined);
  }

  /** Sets the watches on `path` again, after the server was asked to drop some there. */
  resetWatches(path: string): void {
    if (this.#connection?.attached !== true) return;
    for (const bytes of this.watches.resetPackets(this.#lastZxid, path)) this.#connection.send(bytes);
    this.watches.deliverMissed(path);
  }

  /** From now on; see `ClientOptions.leaderLagMs`. */
  setLeaderLag(lagMs: number): void {
    this.#leaderLagMs = lagMs;
    this.#timing = this.#newTiming();
    this.#connection?.setTiming(this.#timing);
  }

  #newTiming(): SessionTiming {
    return sessionTiming(this.#timeoutMs, this.#leaderLagMs, this.#ring.size);
  }

  /** Whether an idle session keeps the process alive. A request that waits for its answer always does. */
  keepAlive(keep: boolean): void {
    this.#keepsAlive = keep;
    this.#updateAlive();
  }

  /** Ends the session on the server, if that can be reached: its ephemeral nodes go at once. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#connection?.attached === true) {
      const answered = this.submit(closeSession()).catch(() => {});
      await Promise.race([answered, sleep(this.#options.clock, CLOSE_WITHIN_MS, this.#over.signal).catch(() => {})]);
    }
    this.#end("closed", closedError());
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    let failures = 0;
    while (this.#endedBy === undefined) {
      const answered = await this.#connectOnce(this.#ring.next());
      failures = answered ? 1 : failures + 1;
      const round = Math.floor((failures - 1) / this.#ring.size);
      const delayMs = clock.random() * Math.min(FIRST_DELAY_MS * 2 ** Math.min(round, 10), LONGEST_DELAY_MS);
      await sleep(clock, delayMs, this.#over.signal).catch(() => {});
    }
  }

  /** Lives as long as the connection. Resolves to whether anything was answered on it beside the handshake. */
  #connectOnce(host: Host): Promise<boolean> {
    let answered = false;
    return new Promise((resolve) => {
      try {
        this.#connection = new Connection({
          ...this.#options,
          host,
          line: this.#line,
          connectTimeoutMs: this.#timing.connectTimeoutMs,
          handshake: {
            lastZxid: this.#lastZxid,
            timeoutMs: this.#options.sessionTimeoutMs,
            sessionId: this.#identity.id,
            password: this.#identity.password,
          },
          onAttach: (response, sentAt) => this.#attach(response, sentAt),
          onAnswer: (sentAt, zxid) => {
            answered = true;
            if (zxid > 0n) this.#lastZxid = zxid;
            this.#confirm(sentAt);
          },
          onEvent: (event) => this.watches.deliver(event),
          onAuth: (errorCode) => {
            const error = this.#credentials.answer(errorCode);
            if (error !== undefined) this.#end("closed", error);
          },
          onEnd: (cause) => {
            this.#connectionLost(cause);
            resolve(answered);
          },
        });
      } catch (error) {
        // The options for TLS cannot be used: trying again does not help.
        this.#end(
          "closed",
          new ZooKeeperError("INVALID_ARGUMENT", "the connection cannot be set up", { cause: error }),
        );
        resolve(false);
      }
    });
  }

  #attach(response: ConnectResponse, sentAt: Instant): { first: Buffer[]; timing: SessionTiming } | undefined {
    const isNew = this.#identity.id === 0n;
    if (!isNew && (response.timeoutMs <= 0 || response.sessionId !== this.#identity.id)) {
      this.#end("expired", new SessionExpiredError());
      return undefined;
    }
    if (response.timeoutMs <= 0) return undefined;
    this.#identity = { id: response.sessionId, password: response.password };
    this.#timeoutMs = response.timeoutMs;
    this.#timing = this.#newTiming();
    this.#confirm(sentAt);
    const first = [...this.#credentials.packets(), ...this.watches.resetPackets(this.#lastZxid)];
    const before = this.#state;
    this.#setState("connected");
    if (before === "suspended") this.watches.deliverMissed();
    return { first, timing: this.#timing };
  }

  #connectionLost(cause: Error): void {
    this.#lastFailure = cause;
    this.#connection = undefined;
    this.#line.connectionLost(cause);
    if (this.#endedBy !== undefined) return;
    if (this.#closing !== undefined) this.#end("closed", closedError());
    else if (this.#state === "connected") this.#setState("suspended");
    this.#limitWaiting();
  }

  #confirm(sentAt: Instant): void {
    if (sentAt.monoMs > this.#confirmedAt.monoMs) this.#confirmedAt = sentAt;
  }

  /** While there is no connection, a request waits for one as long as the session may be trusted, and then fails. */
  #limitWaiting(): void {
    if (this.#waiting !== undefined || this.#line.waiting === 0 || this.#endedBy !== undefined) return;
    const { clock } = this.#options;
    const longestMs = this.#timing.trustMs;
    this.#waiting = clock.after(longestMs / WAIT_STEPS, () => {
      this.#waiting = undefined;
      if (this.#connection?.attached === true) return;
      this.#line.failWaiting(clock.monotonicMs() - longestMs, this.#lastFailure);
      this.#limitWaiting();
    });
  }

  #end(state: "expired" | "closed", error: ZooKeeperError): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = error;
    this.#over.abort();
    this.#waiting?.cancel();
    this.#connection?.destroy(error);
    this.#line.failAll(error);
    this.#credentials.failAll(error);
    this.#setState(state);
    this.watches.deliverLost();
    this.#updateAlive();
  }

  #setState(state: SessionState): void {
    if (this.#state === state || this.#state === "expired" || this.#state === "closed") return;
    this.#state = state;
    for (const listener of this.#listeners) listener(state);
  }

  #updateAlive(): void {
    const wanted = this.#endedBy === undefined && (this.#keepsAlive || !this.#line.idle);
    if (wanted) this.#alive ??= this.#options.clock.stayAlive();
    else {
      this.#alive?.cancel();
      this.#alive = undefined;
    }
  }

  #unreachable(): ZooKeeperError {
    const message = `no ZooKeeper server answered within ${this.#options.connectWithinMs} ms: ${this.#lastFailure.message}`;
    return new ZooKeeperError("UNREACHABLE", message, { cause: this.#lastFailure });
  }
}

function closedError(): ZooKeeperError {
  return new ZooKeeperError("CLOSED", "the ZooKeeper client is closed");
}
