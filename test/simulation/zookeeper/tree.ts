/** The nodes of a simulated ZooKeeper: what requests do to them, and whom that concerns. No I/O. */
import type { JuteWriter } from "../../../src/zookeeper/jute.ts";
import { EventType } from "../../../src/zookeeper/protocol.ts";

export interface Node {
  readonly data: Buffer;
  readonly czxid: bigint;
  readonly ctimeMs: number;
  /** 0: no session's. */
  readonly owner: bigint;
  readonly isContainer: boolean;
  readonly children: Set<string>;
  /** The last change of its children. */
  pzxid: bigint;
  /** The counter behind sequential names: how many children were created. */
  created: number;
}

export interface Creation {
  readonly owner: bigint;
  readonly sequential: boolean;
  readonly isContainer: boolean;
  readonly nowMs: number;
}

export interface Change {
  readonly type: number;
  readonly path: string;
}

/** An error code of the protocol. */
export class Refusal extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`refused: ${code}`);
    this.code = code;
  }
}

export const NO_NODE = -101;
const NODE_EXISTS = -110;
const NOT_EMPTY = -111;
const NOTHING = Buffer.alloc(0);
const SEQUENCE_DIGITS = 10;

export class Tree {
  zxid = 0n;
  readonly #nodes = new Map<string, Node>();
  readonly #changed: (change: Change) => void;

  constructor(changed: (change: Change) => void) {
    this.#changed = changed;
    this.#nodes.set("", this.#newNode(NOTHING, 0n, 0, false));
  }

  get(path: string): Node {
    const node = this.find(path);
    if (node === undefined) throw new Refusal(NO_NODE);
    return node;
  }

  find(path: string): Node | undefined {
    return this.#nodes.get(path);
  }

  create(path: string, data: Buffer, how: Creation): string {
    const parentPath = parentOf(path);
    const parent = this.get(parentPath);
    const full = how.sequential ? `${path}${String(parent.created).padStart(SEQUENCE_DIGITS, "0")}` : path;
    if (this.#nodes.has(full)) throw new Refusal(NODE_EXISTS);
    this.zxid++;
    parent.created++;
    parent.pzxid = this.zxid;
    parent.children.add(full.slice(parentPath.length + 1));
    this.#nodes.set(full, this.#newNode(data, how.owner, how.nowMs, how.isContainer));
    this.#changed({ type: EventType.created, path: full });
    this.#changed({ type: EventType.childrenChanged, path: parentPath });
    return full;
  }

  delete(path: string): void {
    if (this.get(path).children.size > 0) throw new Refusal(NOT_EMPTY);
    const parentPath = parentOf(path);
    const parent = this.get(parentPath);
    this.zxid++;
    parent.pzxid = this.zxid;
    parent.children.delete(path.slice(parentPath.length + 1));
    this.#nodes.delete(path);
    this.#changed({ type: EventType.deleted, path });
    this.#changed({ type: EventType.childrenChanged, path: parentPath });
  }

  /** The session has ended: its nodes go. */
  deleteOf(owner: bigint): void {
    for (const [path, node] of this.#nodes) if (node.owner === owner) this.delete(path);
  }

  /** Tells of a write; nobody reads what was written. Part of a transaction with a removal, which counts it. */
  write(path: string): void {
    this.get(path);
    this.#changed({ type: EventType.dataChanged, path });
  }

  /** Containers that had children go, and start again at 0. */
  removeEmptyContainers(): void {
    for (const [path, node] of this.#nodes) {
      if (node.isContainer && node.created > 0 && node.children.size === 0) this.delete(path);
    }
  }

  #newNode(data: Buffer, owner: bigint, ctimeMs: number, isContainer: boolean): Node {
    return { data, owner, czxid: this.zxid, ctimeMs, isContainer, children: new Set(), pzxid: this.zxid, created: 0 };
  }
}

export function writeStat(writer: JuteWriter, node: Node): void {
  const time = BigInt(Math.floor(node.ctimeMs));
  writer.int64(node.czxid).int64(node.czxid).int64(time).int64(time);
  writer.int32(0).int32(node.created).int32(0).int64(node.owner);
  writer.int32(node.data.length).int32(node.children.size).int64(node.pzxid);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
