/**
 * A simulated ZooKeeper server: sessions that expire, ephemeral and sequential nodes, watches. It speaks the wire protocol, so
 * that the product's client is driven from its first byte to its last. It knows the requests that the locks make.
 */
import { packet } from "../../../src/zookeeper/frames.ts";
import { JuteReader, type JuteWriter } from "../../../src/zookeeper/jute.ts";
import { EventType, OpCode, PASSWORD_BYTES, Xid } from "../../../src/zookeeper/protocol.ts";
import { readPaths, writePaths } from "../../../src/zookeeper/records.ts";
import { SimulatedProcess, type World } from "../../../src/testing/simulation/world.ts";
import { type Change, NO_NODE, Refusal, Tree, writeStat } from "./tree.ts";

/** The server's end of a connection. */
export interface Peer {
  send(bytes: Buffer): void;
  hangUp(): void;
}

interface ServerSession {
  readonly id: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
  heardAtMs: number;
  connection: ServerConnection | undefined;
}

const TICK_MS = 50;
const LEAST_TIMEOUT_MS = 1_000;
const NO_WATCHER = -121;
const UNIMPLEMENTED = -6;
const CONNECTED = 3;

export class SimulatedZooKeeper {
  readonly process: SimulatedProcess;
  readonly connections: Set<ServerConnection> = new Set();
  readonly tree: Tree;
  readonly #sessions = new Map<bigint, ServerSession>();

  constructor(world: World, drift: number) {
    this.process = new SimulatedProcess(world, "server", drift);
    this.tree = new Tree((change) => {
      for (const connection of this.connections) connection.tell(change);
    });
    this.#tick();
  }

  /** Its data and the sessions survive, with their full time-outs; the connections do not. */
  restart(): void {
    for (const session of this.#sessions.values()) session.heardAtMs = this.process.monotonicMs();
    for (const connection of this.connections) connection.end();
  }

  /** A session for whoever asks for one (id 0), or its own again; undefined: it is over, or never was. */
  attach(id: bigint, password: Buffer, timeoutMs: number, connection: ServerConnection): ServerSession | undefined {
    let session = this.#sessions.get(id);
    if (id === 0n) {
      const bits = Buffer.from(this.process.randomBytes(8));
      session = {
        id: bits.readBigUInt64BE() >> 1n,
        password: Buffer.from(this.process.randomBytes(PASSWORD_BYTES)),
        timeoutMs: Math.max(timeoutMs, LEAST_TIMEOUT_MS),
        heardAtMs: 0,
        connection: undefined,
      };
      this.#sessions.set(session.id, session);
    }
    if (session === undefined || (id !== 0n && !session.password.equals(password))) return undefined;
    session.connection?.end();
    session.connection = connection;
    session.heardAtMs = this.process.monotonicMs();
    return session;
  }

  endSession(session: ServerSession): void {
    this.#sessions.delete(session.id);
    this.tree.deleteOf(session.id);
    session.connection?.end();
  }

  #tick(): void {
    const now = this.process.monotonicMs();
    for (const session of this.#sessions.values()) {
      if (now - session.heardAtMs > session.timeoutMs) this.endSession(session);
    }
    this.tree.removeEmptyContainers();
    this.process.after(TICK_MS, () => this.#tick());
  }
}

export class ServerConnection {
  readonly #server: SimulatedZooKeeper;
  readonly #peer: Peer;
  readonly #watches: Record<"data" | "children" | "persistent", Set<string>> = {
    data: new Set(),
    children: new Set(),
    persistent: new Set(),
  };
  #session: ServerSession | undefined;
  #handshaken = false;

  constructor(server: SimulatedZooKeeper, peer: Peer) {
    this.#server = server;
    this.#peer = peer;
    server.connections.add(this);
  }

  /** From the server's side. */
  end(): void {
    if (this.forget()) this.#peer.hangUp();
  }

  /** Either side has closed it. False when that was known. */
  forget(): boolean {
    if (this.#session?.connection === this) this.#session.connection = undefined;
    return this.#server.connections.delete(this);
  }

  /** One packet's body. */
  receive(body: Buffer): void {
    if (!this.#server.connections.has(this)) return;
    const reader = new JuteReader(body);
    if (!this.#handshaken) {
      this.#handshake(reader);
      return;
    }
    const session = this.#session;
    if (session === undefined) return;
    session.heardAtMs = this.#server.process.monotonicMs();
    const xid = reader.int32();
    const opCode = reader.int32();
    let error = 0;
    let answer: (writer: JuteWriter) => void = () => {};
    try {
      answer = this.#carryOut(opCode, reader, session);
    } catch (reason) {
      if (!(reason instanceof Refusal)) throw reason;
      error = reason.code;
    }
    const { zxid } = this.#server.tree;
    this.#peer.send(
      packet((writer) => {
        writer.int32(xid).int64(zxid).int32(error);
        if (error === 0) answer(writer);
      }),
    );
    if (opCode === OpCode.closeSession) this.#server.endSession(session);
  }

  /** Something has changed: a watch is used up by the event that it was set for. */
  tell({ type, path }: Change): void {
    const { data, children, persistent } = this.#watches;
    const wanted =
      type === EventType.childrenChanged
        ? children.delete(path)
        : [data.delete(path), type === EventType.deleted && children.delete(path)].includes(true);
    if (wanted || persistent.has(path)) this.#notify(type, path);
  }

  #notify(type: number, path: string): void {
    const event = (writer: JuteWriter): unknown => writer.int32(type).int32(CONNECTED).string(path);
    this.#peer.send(packet((writer) => event(writer.int32(Xid.notification).int64(-1n).int32(0))));
  }

  #handshake(reader: JuteReader): void {
    this.#handshaken = true;
    reader.int32();
    reader.int64();
    const timeoutMs = reader.int32();
    const id = reader.int64();
    const session = this.#server.attach(id, reader.buffer(), timeoutMs, this);
    this.#session = session;
    const password = session?.password ?? Buffer.alloc(PASSWORD_BYTES);
    this.#peer.send(
      packet((writer) =>
        writer
          .int32(0)
          .int32(session?.timeoutMs ?? 0)
          .int64(session?.id ?? 0n)
          .buffer(password),
      ),
    );
    if (session === undefined) this.end();
  }

  /** Returns what writes the answer. Throws `Refusal`. */
  #carryOut(opCode: number, reader: JuteReader, session: ServerSession): (writer: JuteWriter) => void {
    const { tree } = this.#server;
    switch (opCode) {
      case OpCode.ping:
      case OpCode.closeSession:
      case OpCode.sync:
        return () => {};
      case OpCode.create2:
      case OpCode.createContainer:
        return this.#create(reader, session);
      case OpCode.delete: {
        tree.delete(reader.string());
        return () => {};
      }
      case OpCode.multi:
        return this.#multi(reader);
      case OpCode.exists:
      case OpCode.getData:
      case OpCode.getChildren2:
        return this.#read(opCode, reader.string(), reader.bool());
      case OpCode.setWatches:
      case OpCode.setWatches2: {
        this.#setWatches(reader, opCode === OpCode.setWatches2);
        return () => {};
      }
      case OpCode.addWatch: {
        this.#watches.persistent.add(reader.string());
        return () => {};
      }
      case OpCode.removeWatches: {
        const path = reader.string();
        const sets = Object.values(this.#watches);
        if (!sets.map((set) => set.delete(path)).includes(true)) throw new Refusal(NO_WATCHER);
        return () => {};
      }
      default:
        throw new Refusal(UNIMPLEMENTED);
    }
  }

  #create(reader: JuteReader, session: ServerSession): (writer: JuteWriter) => void {
    const path = reader.string();
    const data = Buffer.from(reader.buffer());
    reader.vector(12, (entry) => [entry.int32(), entry.string(), entry.string()]); // who may touch it: everybody, here
    const flags = reader.int32();
    const isContainer = flags === 4;
    const isEphemeral = flags === 1 || flags === 3;
    const { tree, process } = this.#server;
    const how = {
      owner: isEphemeral ? session.id : 0n,
      sequential: flags === 2 || flags === 3,
      isContainer,
      nowMs: process.wallMs(),
    };
    const created = tree.create(path, data, how);
    return (writer) => writeStat(writer.string(created), tree.get(created));
  }

  /** Writes and removals of nodes without children, one transaction: none of them can fail but for a node that is not there. */
  #multi(reader: JuteReader): (writer: JuteWriter) => void {
    const { tree } = this.#server;
    const parts: { readonly opCode: number; readonly path: string }[] = [];
    for (;;) {
      const opCode = reader.int32();
      const done = reader.bool();
      reader.int32();
      if (done) break;
      if (opCode !== OpCode.setData && opCode !== OpCode.delete) throw new Refusal(UNIMPLEMENTED);
      const path = reader.string();
      if (opCode === OpCode.setData) reader.buffer();
      reader.int32(); // any version
      parts.push({ opCode, path });
    }
    const missing = parts.findIndex(({ path }) => tree.find(path) === undefined);
    const header = (writer: JuteWriter, opCode: number, done: boolean): JuteWriter =>
      writer
        .int32(opCode)
        .bool(done)
        .int32(done ? -1 : 0);
    if (missing >= 0) {
      return (writer) => {
        for (const index of parts.keys()) header(writer, OpCode.error, false).int32(index === missing ? NO_NODE : 0);
        header(writer, OpCode.error, true);
      };
    }
    const stats = parts.map(({ path }) => tree.get(path));
    for (const { opCode, path } of parts) {
      if (opCode === OpCode.setData) tree.write(path);
      else tree.delete(path);
    }
    return (writer) => {
      for (const [index, { opCode }] of parts.entries()) {
        header(writer, opCode, false);
        const stat = stats[index];
        if (opCode === OpCode.setData && stat !== undefined) writeStat(writer, stat);
      }
      header(writer, OpCode.error, true);
    };
  }

  #read(opCode: number, path: string, watch: boolean): (writer: JuteWriter) => void {
    const { tree } = this.#server;
    const node = tree.find(path);
    // Only `exists` leaves a watch on a node that is not there.
    if (watch && (node !== undefined || opCode === OpCode.exists))
      this.#watches[opCode === OpCode.getChildren2 ? "children" : "data"].add(path);
    if (node === undefined) throw new Refusal(NO_NODE);
    const { data } = node;
    const children = [...node.children];
    return (writer) => {
      if (opCode === OpCode.getData) writer.buffer(data);
      if (opCode === OpCode.getChildren2) writePaths(writer, children);
      writeStat(writer, node);
    };
  }

  /** What has happened since the client's last transaction is told now; for the rest the watches stand again. */
  #setWatches(reader: JuteReader, second: boolean): void {
    const { tree } = this.#server;
    const sinceZxid = reader.int64();
    for (const path of readPaths(reader)) {
      if (tree.find(path) === undefined) this.#notify(EventType.deleted, path);
      else this.#watches.data.add(path);
    }
    for (const path of readPaths(reader)) {
      if (tree.find(path) === undefined) this.#watches.data.add(path);
      else this.#notify(EventType.created, path);
    }
    for (const path of readPaths(reader)) {
      const node = tree.find(path);
      if (node === undefined) this.#notify(EventType.deleted, path);
      else if (node.pzxid > sinceZxid) this.#notify(EventType.childrenChanged, path);
      else this.#watches.children.add(path);
    }
    if (second) for (const path of readPaths(reader)) this.#watches.persistent.add(path);
  }
}
