/**
 * Which watchers a session has, what an event of the server means to them, and what must be set again after a reconnect.
 * No I/O; paths are the server's.
 */
import { EventType, OpCode, Xid } from "./protocol.ts";
import { requestPacket } from "./frames.ts";
import { type ServerEvent, writePaths } from "./records.ts";

/**
 * - "created", "deleted", "changed" (its data), "children" (one was created or deleted): what happened to the node;
 * - "missed" (persistent watches only): changes may have been missed, after a reconnect for example; read again;
 * - "lost": the session is over or the client was closed. No event will follow.
 */
export type WatchEventType = "created" | "deleted" | "changed" | "children" | "missed" | "lost";

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
}

/** Called once (one-shot watches) or for every event (persistent ones). What it throws is reported as uncaught. */
export type Watcher = (event: WatchEvent) => void;

/**
 * "data": one-shot, set by getData, and by exists on a node that is there; "exists": one-shot, set by exists on a node that
 * is not there; "children": one-shot, set by getChildren; the other two stay until they are removed.
 */
export type WatchType = "data" | "exists" | "children" | "persistent" | "recursive";

const NAMES: Readonly<Record<number, WatchEventType>> = {
  [EventType.created]: "created",
  [EventType.deleted]: "deleted",
  [EventType.dataChanged]: "changed",
  [EventType.childrenChanged]: "children",
};

/** Which one-shot watches an event uses up. One event may stand for several: a deletion ends data and child watches. */
const USED_UP: Readonly<Record<number, readonly WatchType[]>> = {
  [EventType.created]: ["data", "exists"],
  [EventType.deleted]: ["data", "exists", "children"],
  [EventType.dataChanged]: ["data", "exists"],
  [EventType.childrenChanged]: ["children"],
};

const ONE_SHOT = ["data", "exists", "children"] as const;
const PERSISTENT = ["persistent", "recursive"] as const;
/** Far below the largest packet a server takes. Source: the Java client sends batches of this size. */
const BATCH_BYTES = 128 * 1024;

type Watchers = Map<string, Set<Watcher>>;

export class Watches {
  readonly #byType: Readonly<Record<WatchType, Watchers>> = {
    data: new Map(),
    exists: new Map(),
    children: new Map(),
    persistent: new Map(),
    recursive: new Map(),
  };
  readonly #showPath: (path: string) => string;

  /** `showPath`: how a path of the server looks to the watcher. */
  constructor(showPath: (path: string) => string) {
    this.#showPath = showPath;
  }

  add(type: WatchType, path: string, watcher: Watcher): void {
    const watchers = this.#byType[type];
    const set = watchers.get(path);
    if (set === undefined) watchers.set(path, new Set([watcher]));
    else set.add(watcher);
  }

  /** Takes `watcher` (all of them when none is given) away. True when it was there. */
  remove(type: WatchType, path: string, watcher?: Watcher): boolean {
    const watchers = this.#byType[type];
    const set = watchers.get(path);
    if (set === undefined) return false;
    const found = watcher === undefined || set.delete(watcher);
    if (watcher === undefined || set.size === 0) watchers.delete(path);
    return found;
  }

  has(type: WatchType, path: string): boolean {
    return this.#byType[type].has(path);
  }

  /** How many (path, watcher) pairs there are. */
  get size(): number {
    let size = 0;
    for (const watchers of Object.values(this.#byType)) for (const set of watchers.values()) size += set.size;
    return size;
  }

  /** Tells those that the event concerns. A watcher set on one path in several ways is told once. */
  deliver({ type, path }: ServerEvent): void {
    const name = NAMES[type];
    if (name === undefined) return; // an event of a newer server
    const told = new Set<Watcher>();
    for (const kind of USED_UP[type] ?? []) {
      for (const watcher of this.#byType[kind].get(path) ?? []) told.add(watcher);
      this.#byType[kind].delete(path);
    }
    for (const watcher of this.#byType.persistent.get(path) ?? []) told.add(watcher);
    if (name !== "children" && this.#byType.recursive.size > 0) {
      for (const ancestor of selfAndAncestors(path)) {
        for (const watcher of this.#byType.recursive.get(ancestor) ?? []) told.add(watcher);
      }
    }
    const event = { type: name, path: this.#showPath(path) };
    for (const watcher of told) tell(watcher, event);
  }

  /** The server does not replay what persistent watches miss: theirs is to read again. Only on `path`, if given. */
  deliverMissed(path?: string): void {
    for (const type of PERSISTENT) {
      for (const [candidate, set] of this.#byType[type]) {
        if (path !== undefined && path !== candidate) continue;
        for (const watcher of set) tell(watcher, { type: "missed", path: this.#showPath(candidate) });
      }
    }
  }

  /** The session is over: every watcher learns it once for each path, and all are forgotten. */
  deliverLost(): void {
    const paths: Watchers = new Map();
    for (const watchers of Object.values(this.#byType)) {
      for (const [path, set] of watchers) paths.set(path, new Set([...(paths.get(path) ?? []), ...set]));
      watchers.clear();
    }
    for (const [path, set] of paths) {
      for (const watcher of set) tell(watcher, { type: "lost", path: this.#showPath(path) });
    }
  }

  /**
   * Packets that set everything again (only what is on `path`, if given). The server compares with `lastZxid`, the last
   * change that this client has seen, and at once sends the events that one-shot watches missed.
   */
  resetPackets(lastZxid: bigint, path?: string): Buffer[] {
    const packets: Buffer[] = [];
    let batch = new Batch();
    for (const type of [...ONE_SHOT, ...PERSISTENT]) {
      for (const candidate of path === undefined ? this.#byType[type].keys() : [path]) {
        if (!this.#byType[type].has(candidate)) continue;
        batch.add(type, candidate);
        if (batch.bytes < BATCH_BYTES) continue;
        packets.push(batch.packet(lastZxid));
        batch = new Batch();
      }
    }
    if (batch.bytes > 0) packets.push(batch.packet(lastZxid));
    return packets;
  }
}

class Batch {
  readonly #paths: Record<WatchType, string[]> = { data: [], exists: [], children: [], persistent: [], recursive: [] };
  bytes = 0;

  add(type: WatchType, path: string): void {
    this.#paths[type].push(path);
    this.bytes += 4 + Buffer.byteLength(path);
  }

  packet(lastZxid: bigint): Buffer {
    const { data, exists, children, persistent, recursive } = this.#paths;
    // Servers before 3.6 know nothing of the second form; they need it only for watches that they cannot have.
    const second = persistent.length > 0 || recursive.length > 0;
    return requestPacket(second ? OpCode.setWatches2 : OpCode.setWatches, Xid.setWatches, (writer) => {
      writer.int64(lastZxid);
      for (const paths of [data, exists, children]) writePaths(writer, paths);
      if (second) for (const paths of [persistent, recursive]) writePaths(writer, paths);
    });
  }
}

function* selfAndAncestors(path: string): Generator<string, void, undefined> {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) yield path.slice(0, end);
  if (path !== "/") yield "/";
}

/** A watcher that throws must not end the connection's reading: the error surfaces as an uncaught exception of its own. */
function tell(watcher: Watcher, event: WatchEvent): void {
  try {
    watcher(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
