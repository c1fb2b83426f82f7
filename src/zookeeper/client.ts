/** The client: every operation of a ZooKeeper session as a promise. Knows nothing of locks. */
import type { Instant } from "../engine/clock.ts";
import { type Acl, CREATOR_ACL, OPEN_ACL } from "./acl.ts";
import {
  type AuthOptions,
  type ClientOptions,
  credential,
  LARGEST_LAG_SHARE,
  sessionOptions,
} from "./client-options.ts";
import { invalidArgument, NO_NODE } from "./errors.ts";
import * as operations from "./operations.ts";
import type {
  AuthenticatedId,
  CreatedNode,
  CreateRequest,
  NodeAcl,
  NodeChildren,
  NodeData,
  Operation,
} from "./operations.ts";
import { type Chroot, checkPath } from "./paths.ts";
import { AddWatchMode, type CreateMode, WatchKind } from "./protocol.ts";
import type { Stat } from "./records.ts";
import { Session, type SessionIdentity, type SessionState } from "./session.ts";
import { multi, type TransactionPart, type TransactionResult } from "./transactions.ts";
import type { Watcher, WatchType } from "./watches.ts";

export interface RequestOptions {
  /**
   * Ends the wait with the signal's reason. A request that was not sent yet is withdrawn; one that was sent may still be
   * applied.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Another request follows in this turn of the event loop: both go out in one write. Default false: where nothing is
   * under way the request is sent at once.
   */
  readonly more?: boolean | undefined;
}

export interface ReadOptions extends RequestOptions {
  /** Called once, at the next change of what was read. The same function on the same path is called once only. */
  readonly watch?: Watcher | undefined;
}

export interface VersionOptions extends RequestOptions {
  /** The change is made only if the node has this version. Default −1: any. */
  readonly version?: number | undefined;
}

export interface CreateOptions extends RequestOptions {
  /** Default "persistent". */
  readonly mode?: CreateMode | undefined;
  /** Default: everybody may do everything, or only the creator if this client has authenticated. */
  readonly acl?: Acl | undefined;
  /** For "ttl" and "ttl-sequential", which need it: 1 … 1,099,511,627,775 ms. */
  readonly ttlMs?: number | undefined;
}

/** A part of a transaction; the fields mean what the options of the same name mean. */
export type TransactionRequest =
  | {
      readonly kind: "create";
      readonly path: string;
      readonly data?: Data | undefined;
      readonly mode?: CreateMode | undefined;
      readonly acl?: Acl | undefined;
      readonly ttlMs?: number | undefined;
    }
  | { readonly kind: "delete" | "check"; readonly path: string; readonly version?: number | undefined }
  | { readonly kind: "setData"; readonly path: string; readonly data: Data; readonly version?: number | undefined };

/** A string goes as UTF-8. */
export type Data = Uint8Array | string;

const LONGEST_TTL_MS = 2 ** 40 - 1;

/**
 * A session with a ZooKeeper ensemble.
 *
 * Requests are pipelined: the first goes out at once (but see `RequestOptions.more`), what is asked in one turn of the event
 * loop while others are under way in one write; each costs one round trip.
 * They are applied and answered in the order in which they were made. While the connection is lost, requests wait for the next
 * one, for as long as a session can be trusted without an answer (its time-out, less a margin); then they fail.
 *
 * Every method rejects with `ZooKeeperError` (see its `code`): with `ConnectionLossError` when the connection was lost before
 * the answer, with `SessionExpiredError` when the session is over, with code "CLOSED" after `close()`.
 */
export class ZooKeeper {
  readonly #session: Session;
  readonly #chroot: Chroot;

  private constructor(session: Session, chroot: Chroot) {
    this.#session = session;
    this.#chroot = chroot;
  }

  /**
   * Connects to one of `servers` (`host:port,host:port/chroot`) and opens a session. Rejects with code "UNREACHABLE" when
   * none answered in time, and with "INVALID_ARGUMENT" before anything is tried when an option is wrong.
   */
  static async connect(servers: string, options: ClientOptions = {}): Promise<ZooKeeper> {
    const { session: settings, chroot } = sessionOptions(servers, options);
    const session = new Session(settings);
    await session.start(options.signal);
    return new ZooKeeper(session, chroot);
  }

  get state(): SessionState {
    return this.#session.state;
  }

  /** `host:port` of the server that we are connected to now. */
  get server(): string | undefined {
    return this.#session.server;
  }

  /** Who the session is: `id` is the `ephemeralOwner` of its ephemeral nodes. Keep the password to yourself. */
  get session(): SessionIdentity {
    return this.#session.identity;
  }

  /** The time-out that the server agreed to. */
  get sessionTimeoutMs(): number {
    return this.#session.timeoutMs;
  }

  /** The instant before the newest request (or ping) that was answered was sent: the session was alive then. */
  get confirmedAt(): Instant {
    return this.#session.confirmedAt;
  }

  /** The last change anywhere on the servers that an answer has told of; 0n before the first answer. */
  get lastZxid(): bigint {
    return this.#session.lastZxid;
  }

  /**
   * What is left until the local session deadline: for so long no server can have ended the session, whatever has happened
   * to the connection. 0 or less when it has passed; the session may be over, or found alive again by a reconnect.
   */
  remainingMs(): number {
    return this.#session.remainingMs();
  }

  /** Takes another `leaderLagMs` from now on (see the option): for those who ask the servers once they are connected. */
  setLeaderLag(lagMs: number): void {
    if (!(lagMs >= 0 && lagMs <= this.sessionTimeoutMs * LARGEST_LAG_SHARE)) {
      throw invalidArgument(`a leader's lag of ${lagMs} ms leaves nothing of a session of ${this.sessionTimeoutMs} ms`);
    }
    this.#session.setLeaderLag(lagMs);
  }

  /** Called at every change of `state`. Returns what takes the listener away. */
  onState(listener: (state: SessionState) => void): () => void {
    return this.#session.onState(listener);
  }

  /** How many watchers are set, counted by path. */
  get watchCount(): number {
    return this.#session.watches.size;
  }

  /** Creates a node. Rejects with "NODE_EXISTS", or with "NO_NODE" when its parent does not exist. */
  create(path: string, data: Data = "", options: CreateOptions = {}): Promise<CreatedNode> {
    return attempt(() => {
      const request = this.#createRequest(path, data, options);
      const operation = operations.create(request, (created) => this.#chroot.toClient(created));
      return this.#session.submit(operation, options);
    });
  }

  /** Rejects with "NO_NODE", "NOT_EMPTY" or "BAD_VERSION". */
  delete(path: string, options: VersionOptions = {}): Promise<void> {
    const { version = -1 } = options;
    return attempt(() => this.#session.submit(operations.remove(this.#server(path), version), options));
  }

  /** Null when there is no such node. The watch is set in both cases. */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | null> {
    const { watch } = options;
    return attempt(() => {
      const server = this.#server(path);
      const operation = operations.exists(server, watch !== undefined);
      const type = (errorCode: number): WatchType | undefined =>
        errorCode === 0 ? "data" : errorCode === NO_NODE ? "exists" : undefined;
      return this.#session.submit(this.#watching(operation, server, watch, type), options);
    });
  }

  /** Rejects with "NO_NODE"; no watch is set then. */
  getData(path: string, options: ReadOptions = {}): Promise<NodeData> {
    const { watch } = options;
    return attempt(() => {
      const server = this.#server(path);
      const operation = operations.getData(server, watch !== undefined);
      return this.#session.submit(this.#watching(operation, server, watch, onSuccess("data")), options);
    });
  }

  /** Rejects with "NO_NODE" or "BAD_VERSION". */
  setData(path: string, data: Data, options: VersionOptions = {}): Promise<Stat> {
    const { version = -1 } = options;
    return attempt(() => this.#session.submit(operations.setData(this.#server(path), bytes(data), version), options));
  }

  /** Names of the direct children, in no order. Rejects with "NO_NODE"; no watch is set then. */
  getChildren(path: string, options: ReadOptions = {}): Promise<NodeChildren> {
    const { watch } = options;
    return attempt(() => {
      const server = this.#server(path);
      const operation = operations.getChildren(server, watch !== undefined);
      return this.#session.submit(this.#watching(operation, server, watch, onSuccess("children")), options);
    });
  }

  /** Resolves when the server that we are connected to has seen all that was committed before: later reads show it. */
  sync(path = "/", options: RequestOptions = {}): Promise<void> {
    return attempt(() => this.#session.submit(operations.sync(this.#server(path)), options));
  }

  getAcl(path: string, options: RequestOptions = {}): Promise<NodeAcl> {
    return attempt(() => this.#session.submit(operations.getAcl(this.#server(path)), options));
  }

  /** `version` is compared with the node's `aversion`. */
  setAcl(path: string, acl: Acl, options: VersionOptions = {}): Promise<Stat> {
    const { version = -1 } = options;
    return attempt(() => this.#session.submit(operations.setAcl(this.#server(path), acl, version), options));
  }

  /** Rejects with "BAD_VERSION" unless the node has the version, with "NO_NODE" when it does not exist. Changes nothing. */
  async check(path: string, version: number, options: RequestOptions = {}): Promise<void> {
    await this.multi([{ kind: "check", path, version }], options);
  }

  /** All parts are applied, or none: then it rejects with `TransactionError`, which says which part failed and why. */
  multi(parts: readonly TransactionRequest[], options: RequestOptions = {}): Promise<TransactionResult[]> {
    return attempt(() => {
      const checked = parts.map((part) => this.#part(part));
      return this.#session.submit(
        multi(checked, (path) => this.#chroot.toClient(path)),
        options,
      );
    });
  }

  /**
   * Sets a watch that stays: `watcher` is called for every change of the node and of its list of children, or with
   * `recursive` for every change of the node and all below it (not for lists of children). Needs ZooKeeper 3.6.
   */
  addWatch(
    path: string,
    watcher: Watcher,
    options: RequestOptions & { readonly recursive?: boolean | undefined } = {},
  ): Promise<void> {
    const { recursive = false } = options;
    return attempt(() => {
      const server = this.#server(path);
      const mode = recursive ? AddWatchMode.persistentRecursive : AddWatchMode.persistent;
      const operation = operations.addWatch(server, mode);
      const type = onSuccess(recursive ? "recursive" : "persistent");
      return this.#session.submit(this.#watching(operation, server, watcher, type), options);
    });
  }

  /**
   * Takes `watcher` away from `path`, however it was set there (all watchers of the path when none is given). It is not
   * called any more from this moment on. The server is asked only when nobody else waits on that path in the same way.
   */
  removeWatches(path: string, watcher?: Watcher, options: RequestOptions = {}): Promise<void> {
    return attempt(async () => {
      const server = this.#server(path);
      const { watches } = this.#session;
      const removed = WATCH_TYPES.filter((type) => watches.remove(type, server, watcher));
      const kinds = removed.filter((type) => !sharing(type).some((other) => watches.has(other, server))).map(kindOf);
      if (kinds.length === 0) return;
      const kind = kinds.every((other) => other === kinds[0]) ? (kinds[0] ?? WatchKind.any) : WatchKind.any;
      const operation = {
        ...operations.removeWatches(server, kind),
        // Too much may have gone: a persistent watch can only be dropped with all the others of its path (3.8), and a
        // watch asked for just before was set meanwhile. What is wanted is set again; the server then tells what it missed.
        answered: () => this.#session.resetWatches(server),
      };
      await this.#session.submit(operation, options).catch(ignoreNoWatcher);
    });
  }

  /** Paths of this session's ephemeral nodes below `prefix`. Needs ZooKeeper 3.6. */
  getEphemerals(prefix = "/", options: RequestOptions = {}): Promise<string[]> {
    return attempt(async () => {
      const paths = await this.#session.submit(operations.getEphemerals(this.#server(prefix)), options);
      return paths.map((path) => this.#chroot.toClient(path));
    });
  }

  /** Who the server thinks we are. Needs ZooKeeper 3.7. */
  whoAmI(options: RequestOptions = {}): Promise<AuthenticatedId[]> {
    return attempt(() => this.#session.submit(operations.whoAmI(), options));
  }

  /** Authenticates the session, now and after every reconnect. Rejects with "AUTH_FAILED" when the server refuses. */
  addAuth(auth: AuthOptions): Promise<void> {
    return attempt(() => this.#session.authenticate(credential(auth)));
  }

  /** From now on only a request that waits for its answer keeps the process alive, not the session itself. */
  unref(): this {
    this.#session.keepAlive(false);
    return this;
  }

  /** Takes `unref` back. */
  ref(): this {
    this.#session.keepAlive(true);
    return this;
  }

  /** Ends the session: its ephemeral nodes go at once if a server can be reached. Never rejects; takes 2 s at most. */
  close(): Promise<void> {
    return this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #server(path: string): string {
    checkPath(path);
    return this.#chroot.toServer(path);
  }

  #createRequest(path: string, data: Data, options: Omit<CreateOptions, "signal" | "more">): CreateRequest {
    const { mode = "persistent", acl = this.#session.hasCredentials ? CREATOR_ACL : OPEN_ACL, ttlMs = 0 } = options;
    const sequential = operations.isSequential(mode);
    checkPath(path, sequential);
    if (operations.isTtl(mode) && !(Number.isInteger(ttlMs) && ttlMs >= 1 && ttlMs <= LONGEST_TTL_MS)) {
      throw invalidArgument(`mode ${JSON.stringify(mode)} needs ttlMs, a whole number from 1 to ${LONGEST_TTL_MS}`);
    }
    return { path: this.#chroot.toServer(path, sequential), data: bytes(data), acl, mode, ttlMs };
  }

  #part(part: TransactionRequest): TransactionPart {
    if (part.kind === "create") return { kind: "create", ...this.#createRequest(part.path, part.data ?? "", part) };
    const path = this.#server(part.path);
    const { version = -1 } = part;
    return part.kind === "setData"
      ? { kind: "setData", path, data: bytes(part.data), version }
      : { kind: part.kind, path, version };
  }

  /** The watcher is registered when the reply is read, before an event that follows it can be. */
  #watching<T>(
    operation: Operation<T>,
    path: string,
    watcher: Watcher | undefined,
    type: (errorCode: number) => WatchType | undefined,
  ): Operation<T> {
    if (watcher === undefined) return operation;
    const { watches } = this.#session;
    return {
      ...operation,
      answered(errorCode) {
        const kind = type(errorCode);
        if (kind !== undefined) watches.add(kind, path, watcher);
      },
    };
  }
}

/** What is wrong with an argument is a rejection too, never thrown. */
function attempt<T>(start: () => Promise<T>): Promise<T> {
  try {
    return start();
  } catch (error) {
    return Promise.reject(error);
  }
}

const WATCH_TYPES: readonly WatchType[] = ["data", "exists", "children", "persistent", "recursive"];

/** To the server, getData and exists set the same watch. */
function sharing(type: WatchType): readonly WatchType[] {
  return type === "data" || type === "exists" ? ["data", "exists"] : [type];
}

function kindOf(type: WatchType): number {
  if (type === "children") return WatchKind.children;
  return type === "data" || type === "exists" ? WatchKind.data : WatchKind.any;
}

function onSuccess(type: WatchType): (errorCode: number) => WatchType | undefined {
  return (errorCode) => (errorCode === 0 ? type : undefined);
}

function bytes(data: Data): Uint8Array {
  return typeof data === "string" ? Buffer.from(data) : data;
}

/** The watch had fired already. */
function ignoreNoWatcher(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "NO_WATCHER")) throw error;
}
