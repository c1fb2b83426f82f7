/**
 * Bells: each connection listens on a private local socket (a named pipe on Windows). Those who grant a request write its
 * owner and token there; those who wait keep a link to the process just ahead, and its end makes them look at once.
 * Bells only make it faster. A socket that is missing or refuses proves nothing; a lost message costs one keep-alive.
 *
 * One line a message: `granted OWNER TOKEN`, `check OWNER`, and `from VISITOR` as the first line of a link, so that it
 * can be used in both directions.
 */
import { closeSync, constants, openSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Clock } from "../../engine/clock.ts";
import { BELL_SUFFIX } from "./presence.ts";

/** Where a visitor's socket is, as written in its row; null when it has none. */
export interface Address {
  readonly visitor: number;
  readonly bell: string | null;
}

export interface BellEvents {
  granted(owner: string, token: bigint): void;
  check(owner: string): void;
  /** The link to a visitor that somebody watches is gone or cannot be made. It may be dead. */
  ended(visitor: number): void;
}

/** sockaddr_un: 108 bytes with the closing zero on Linux, 104 elsewhere. */
const LONGEST_SOCKET_PATH = process.platform === "linux" ? 107 : 103;
/** A link that failed is not tried again for so long, or its failure would start the next try at once. */
const RETRY_AFTER_MS = 1_000;
/** What a stopped process has not read stays in our memory: then its keep-alives have to do. */
const MOST_UNSENT_BYTES = 64 * 1024;
const LONGEST_LINE = 256;
/** Links that nobody watches are kept for the next ring, up to this many. */
const MOST_IDLE_LINKS = 64;
const MOST_FAILURES = 1_024;

/** A connection that we have made. Watching needs one of our own: the other side may close its idle ones. */
interface Link {
  readonly socket: Socket;
  readonly watchers: Set<string>;
}

export class Bells {
  readonly #clock: Clock;
  readonly #folder: string;
  readonly #self: number;
  readonly #events: BellEvents;
  readonly #links = new Map<number, Link>();
  /** Connections that visitors have made to us, good for ringing back. */
  readonly #callers = new Map<number, Socket>();
  readonly #sockets = new Set<Socket>();
  readonly #watching = new Map<string, readonly number[]>();
  readonly #failedAtMs = new Map<number, number>();
  #folderHandle: number | undefined;
  #server: Server | undefined;

  constructor(clock: Clock, folder: string, self: number, events: BellEvents) {
    this.#clock = clock;
    this.#folder = folder;
    this.#self = self;
    this.#events = events;
  }

  /** The address at which `listen` will try first. */
  nameFor(id: string): string {
    return process.platform === "win32" ? `\\\\.\\pipe\\holdfast-${id}` : id + BELL_SUFFIX;
  }

  /** Listens; resolves to the address for the visitor's row, or to null when no socket can be made. */
  async listen(id: string): Promise<string | null> {
    const name = this.nameFor(id);
    if (await this.#listenAt(this.#resolve(name))) return name;
    // A file system without sockets, or a path too long to name one.
    const elsewhere = join(tmpdir(), `holdfast-${id}${BELL_SUFFIX}`);
    return (await this.#listenAt(elsewhere)) ? elsewhere : null;
  }

  #listenAt(path: string): Promise<boolean> {
    return new Promise((resolve) => {
      const server = createServer((socket) => this.#welcome(socket));
      server.once("error", () => resolve(false));
      server.listen({ path }, () => {
        server.removeAllListeners("error");
        // Too many open files while accepting: whoever rings falls back on keep-alives.
        server.on("error", () => {});
        server.unref();
        this.#server = server;
        resolve(true);
      });
    });
  }

  /** A socket beside the lock file, by a path short enough for the system: containers that share the folder share it. */
  #resolve(bell: string): string {
    if (isAbsolute(bell)) return bell;
    const path = join(this.#folder, bell);
    if (Buffer.byteLength(path) <= LONGEST_SOCKET_PATH || process.platform !== "linux") return path;
    // Only the folder is opened here, never a file that carries locks.
    this.#folderHandle ??= openSync(this.#folder, constants.O_RDONLY | constants.O_DIRECTORY);
    return `/proc/self/fd/${this.#folderHandle}/${bell}`;
  }

  /** Tells `visitor` that a request of its own was granted. */
  ringGranted(address: Address, owner: string, token: bigint): void {
    this.#send(address, `granted ${owner} ${token}\n`);
  }

  /** Tells `visitor` to look after a request of its own. */
  ringCheck(address: Address, owner: string): void {
    this.#send(address, `check ${owner}\n`);
  }

  /**
   * Watches the processes just ahead of `owner` instead of those watched before. False when one of them cannot be
   * reached: then its end will not be heard.
   */
  watch(owner: string, ahead: readonly Address[]): boolean {
    const before = this.#watching.get(owner);
    if (before !== undefined) {
      for (const visitor of before) {
        if (!ahead.some((each) => each.visitor === visitor)) this.#links.get(visitor)?.watchers.delete(owner);
      }
    }
    if (ahead.length === 0) {
      if (before !== undefined) this.#watching.delete(owner);
      return true;
    }
    this.#watching.set(
      owner,
      ahead.map((each) => each.visitor),
    );
    let reachable = true;
    for (const address of ahead) {
      const link = this.#linkTo(address);
      if (link === undefined) reachable = false;
      else link.watchers.add(owner);
    }
    return reachable;
  }

  /** The requests that wait behind `visitor`. */
  watchersOf(visitor: number): string[] {
    return [...this.#watching].filter(([, ahead]) => ahead.includes(visitor)).map(([owner]) => owner);
  }

  close(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#links.clear();
    this.#callers.clear();
    this.#watching.clear();
    if (this.#folderHandle !== undefined) closeSync(this.#folderHandle);
    this.#folderHandle = undefined;
  }

  #send(address: Address, line: string): void {
    const socket = this.#callers.get(address.visitor) ?? this.#linkTo(address)?.socket;
    if (socket !== undefined && socket.writableLength < MOST_UNSENT_BYTES) socket.write(line);
  }

  #linkTo({ visitor, bell }: Address): Link | undefined {
    const known = this.#links.get(visitor);
    if (known !== undefined) return known;
    const failedAtMs = this.#failedAtMs.get(visitor) ?? -Infinity;
    if (bell === null || this.#clock.monotonicMs() - failedAtMs < RETRY_AFTER_MS) return undefined;
    let path: string;
    try {
      path = this.#resolve(bell);
    } catch {
      return undefined;
    }
    return this.#link(createConnection({ path }), visitor);
  }

  #link(socket: Socket, visitor: number): Link {
    const link: Link = { socket, watchers: new Set() };
    this.#links.set(visitor, link);
    this.#read(socket, () => {});
    socket.on("close", () => {
      if (this.#links.get(visitor) !== link) return;
      this.#links.delete(visitor);
      if (this.#failedAtMs.size >= MOST_FAILURES) this.#failedAtMs.clear();
      this.#failedAtMs.set(visitor, this.#clock.monotonicMs());
      if (link.watchers.size > 0) this.#events.ended(visitor);
    });
    socket.write(`from ${this.#self}\n`);
    if (this.#links.size > MOST_IDLE_LINKS) this.#dropIdle();
    return link;
  }

  #welcome(socket: Socket): void {
    this.#read(socket, (visitor) => {
      this.#callers.set(visitor, socket);
      socket.on("close", () => {
        if (this.#callers.get(visitor) === socket) this.#callers.delete(visitor);
      });
    });
  }

  #dropIdle(): void {
    for (const [visitor, link] of this.#links) {
      if (this.#links.size <= MOST_IDLE_LINKS) return;
      if (link.watchers.size > 0) continue;
      this.#links.delete(visitor);
      link.socket.end();
    }
  }

  #read(socket: Socket, from: (visitor: number) => void): void {
    let rest = "";
    this.#sockets.add(socket);
    socket.unref();
    // What goes wrong here is told by "close".
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > LONGEST_LINE) socket.destroy();
      else for (const line of lines) this.#hear(line, from);
    });
  }

  #hear(line: string, from: (visitor: number) => void): void {
    const [verb, subject = "", token = ""] = line.split(" ");
    if (verb === "granted" && /^\d{1,16}$/.test(token)) this.#events.granted(subject, BigInt(token));
    else if (verb === "check") this.#events.check(subject);
    else if (verb === "from" && /^\d{1,16}$/.test(subject)) from(Number(subject));
  }
}
