/** The session of now: one at a time, made anew when the servers have ended the last one. */
import type { Clock } from "../../engine/clock.ts";
import { ClosedError, ConfigError, EngineUnavailableError } from "../../engine/errors.ts";
import { type AuthOptions, type OpenWire, type TlsOptions, ZooKeeper } from "../../zookeeper/index.ts";
import { failureOf } from "./failure.ts";
import { askLeaderLag, type LeaderLag } from "./leader-lag.ts";
import { LockSession } from "./lock-session.ts";

export interface SessionSettings {
  readonly clock: Clock;
  /** `host:port,host:port`. */
  readonly servers: string;
  readonly sessionTimeoutMs: number;
  /** Undefined: asked of the servers. */
  readonly leaderLagMs: number | undefined;
  readonly connectWithinMs: number;
  readonly auth: readonly AuthOptions[];
  readonly tls: TlsOptions | undefined;
  /** For tests. Default: sockets. */
  readonly openWire?: OpenWire | undefined;
}

/** What has to be left of a session's time-out when the leader's lag is taken off. */
const LEAST_SHARE = 1 / 4;

export class SessionKeeper {
  readonly #settings: SessionSettings;
  readonly #closing = new AbortController();
  #latest: LockSession | undefined;
  #opening: Promise<LockSession> | undefined;
  #leaderLagMs: number | undefined;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
    this.#leaderLagMs = settings.leaderLagMs;
  }

  /** The last session, which may be over. */
  get latest(): LockSession | undefined {
    return this.#latest;
  }

  /** The session, if there is one that is not over. */
  get now(): LockSession | undefined {
    return this.#latest?.over === false ? this.#latest : undefined;
  }

  /** The session, made if need be: once for all that ask. Rejects with `EngineUnavailableError` or `ConfigError`. */
  async get(signal: AbortSignal | undefined): Promise<LockSession> {
    if (this.now !== undefined) return this.now;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return await unlessAborted(this.#opening, signal);
  }

  async close(): Promise<void> {
    this.#closing.abort(new ClosedError());
    await this.#opening?.catch(() => {});
    await this.#latest?.zk.close();
  }

  async #open(): Promise<LockSession> {
    const { clock, servers, sessionTimeoutMs, connectWithinMs, auth, tls, openWire } = this.#settings;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    try {
      const options = { sessionTimeoutMs, connectWithinMs, auth, tls, openWire, clock, signal };
      const zk = (await ZooKeeper.connect(servers, options)).unref();
      try {
        const lag = await this.#leaderLag(zk);
        checkTimeout(zk.sessionTimeoutMs, lag, sessionTimeoutMs);
        zk.setLeaderLag(lag.ms);
        this.#latest = new LockSession(zk, lag.ms, clock);
      } catch (error) {
        await zk.close();
        throw error;
      }
      return this.#latest;
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Asked once: what a server has told is kept, what was only guessed is not. */
  async #leaderLag(zk: ZooKeeper): Promise<LeaderLag> {
    if (this.#leaderLagMs !== undefined) return { ms: this.#leaderLagMs, told: true };
    const lag = await askLeaderLag(zk, this.#settings.clock, this.#settings.tls);
    if (lag.told) this.#leaderLagMs = lag.ms;
    return lag;
  }
}

function checkTimeout(sessionTimeoutMs: number, { ms: leaderLagMs, told }: LeaderLag, wantedMs: number): void {
  if (sessionTimeoutMs - leaderLagMs >= sessionTimeoutMs * LEAST_SHARE) return;
  const least = Math.ceil(leaderLagMs / (1 - LEAST_SHARE));
  if (!told) {
    // A frozen server, or one without a leader: no reason to tell its user that the settings are wrong.
    throw new EngineUnavailableError(
      `ZooKeeper: the server did not say how long it may answer without its leader, and sessions of ${sessionTimeoutMs} ms ` +
        `are too short for the ${leaderLagMs} ms of its default settings; name leaderLagMs, or take at least ${least} ms`,
    );
  }
  const what = sessionTimeoutMs < wantedMs ? "the servers limit sessions to" : "sessionTimeoutMs is";
  throw new ConfigError(
    `${what} ${sessionTimeoutMs} ms: too short where a follower may answer for ${leaderLagMs} ms without its leader ` +
      `(leaderLagMs); at least ${least} ms`,
  );
}

/** Waits for `promise`, but not past an abort. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
