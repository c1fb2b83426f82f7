/** A TCP proxy in front of one server that makes the network misbehave: latency, stalls, lost directions, resets, cuts. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

export interface Faults {
  /** What happens to bytes on their way to the server. "drop": read and thrown away; "stall": not read, kept for later. */
  readonly toServer?: "pass" | "drop" | "stall";
  /** The same on the way back: with "drop" a request is applied and its reply lost. */
  readonly toClient?: "pass" | "drop" | "stall";
  /** Added to each direction, in ms. */
  readonly delayMs?: number;
  /** New connections are reset. */
  readonly refuse?: boolean;
  /** Each connection is reset when so many bytes have come from the server: in the middle of a packet, if one likes. */
  readonly cutToClientAfter?: number;
  /** The same for bytes from the client. */
  readonly cutToServerAfter?: number;
  /** Chunks from the server for which this says true are thrown away; the rest passes. */
  readonly lose?: (bytes: Buffer) => boolean;
}

export interface FaultProxy {
  readonly port: number;
  readonly address: string;
  /** Changes what is named; the rest stays as it is. "pass" also lets go what was stalled. */
  set(faults: Faults): void;
  /** Resets every connection. */
  reset(): void;
  /** Connections there are now. */
  readonly connections: number;
  close(): Promise<void>;
}

type Settings = Required<Faults>;
type Direction = "toServer" | "toClient";

/** What becomes of the bytes that come from the server; one per connection. */
export type Filter = (bytes: Buffer) => Buffer;

/** `newFilter` is called for each connection. */
export async function startFaultProxy(
  targetPort: number,
  targetHost = "127.0.0.1",
  port?: number,
  newFilter?: () => Filter,
): Promise<FaultProxy> {
  const target = { port: targetPort, host: targetHost };
  const proxy = new TcpFaultProxy(port ?? (await freePort()), target, newFilter);
  await proxy.listen();
  return proxy;
}

class TcpFaultProxy implements FaultProxy {
  readonly port: number;
  readonly #target: { port: number; host: string };
  readonly #newFilter: (() => Filter) | undefined;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #settings: Settings = {
    toServer: "pass",
    toClient: "pass",
    delayMs: 0,
    refuse: false,
    cutToClientAfter: Infinity,
    cutToServerAfter: Infinity,
    lose: () => false,
  };

  constructor(port: number, target: { port: number; host: string }, newFilter: (() => Filter) | undefined) {
    this.port = port;
    this.#target = target;
    this.#newFilter = newFilter;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject).listen(this.port, "127.0.0.1", resolve);
    });
  }

  set(faults: Faults): void {
    this.#settings = { ...this.#settings, ...faults };
    for (const pair of this.#pairs) pair.letGo();
  }

  reset(): void {
    for (const pair of this.#pairs) pair.reset();
  }

  close(): Promise<void> {
    this.reset();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.#settings.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const pair = new Pair(client, server, () => this.#settings, this.#newFilter?.());
    this.#pairs.add(pair);
    pair.onEnd(() => this.#pairs.delete(pair));
  }
}

/** On its way, in order: bytes, or undefined for the end of the stream. */
interface Parcel {
  readonly dueMs: number;
  readonly bytes: Buffer | undefined;
}

class Pair {
  readonly #sockets: Readonly<Record<Direction, { from: Socket; to: Socket }>>;
  readonly #settings: () => Settings;
  readonly #kept: Record<Direction, (Buffer | undefined)[]> = { toServer: [], toClient: [] };
  readonly #late: Record<Direction, Parcel[]> = { toServer: [], toClient: [] };
  readonly #passed: Record<Direction, number> = { toServer: 0, toClient: 0 };
  #ended: (() => void) | undefined;

  constructor(client: Socket, server: Socket, settings: () => Settings, filter: Filter = (bytes) => bytes) {
    this.#settings = settings;
    this.#sockets = { toServer: { from: client, to: server }, toClient: { from: server, to: client } };
    for (const direction of ["toServer", "toClient"] as const) {
      const { from } = this.#sockets[direction];
      from.on("data", (bytes: Buffer) => this.#pass(direction, direction === "toClient" ? filter(bytes) : bytes));
      from.on("error", () => this.reset());
      from.on("end", () => this.#pass(direction, undefined));
      from.on("close", () => this.#sockets[direction].to.destroyed && this.#ended?.());
    }
  }

  onEnd(ended: () => void): void {
    this.#ended = ended;
  }

  reset(): void {
    for (const { from } of Object.values(this.#sockets)) {
      // One that is not connected, or has sent its end, cannot send a reset: trying leaves Node's handle open for ever.
      if (from.connecting || from.writableEnded) from.destroy();
      else from.resetAndDestroy();
    }
    this.#ended?.();
  }

  letGo(): void {
    for (const direction of ["toServer", "toClient"] as const) {
      if (this.#settings()[direction] === "stall") continue;
      for (const bytes of this.#kept[direction].splice(0)) this.#pass(direction, bytes);
      this.#sockets[direction].from.resume();
    }
  }

  /** A dropped direction swallows the end as well: the other side sees a connection that is half open. */
  #pass(direction: Direction, bytes: Buffer | undefined): void {
    const settings = this.#settings();
    const { from, to } = this.#sockets[direction];
    if (settings[direction] === "drop") return;
    if (direction === "toClient" && bytes !== undefined && settings.lose(bytes)) return;
    if (settings[direction] === "stall") {
      from.pause();
      this.#kept[direction].push(bytes);
      return;
    }
    const limit = direction === "toClient" ? settings.cutToClientAfter : settings.cutToServerAfter;
    const left = limit - this.#passed[direction];
    this.#passed[direction] += bytes?.length ?? 0;
    if (bytes === undefined || bytes.length <= left) this.#send(direction, bytes, settings.delayMs);
    else this.#cut(to, bytes.subarray(0, Math.max(left, 0)));
  }

  /** Late or not, everything arrives in the order in which it was sent: a TCP connection knows no other. */
  #send(direction: Direction, bytes: Buffer | undefined, delayMs: number): void {
    const late = this.#late[direction];
    if (delayMs === 0 && late.length === 0) {
      this.#write(direction, bytes);
      return;
    }
    const dueMs = Math.max(performance.now() + delayMs, late.at(-1)?.dueMs ?? 0);
    late.push({ dueMs, bytes });
    if (late.length === 1) this.#deliverLater(direction, dueMs);
  }

  #deliverLater(direction: Direction, dueMs: number): void {
    const late = this.#late[direction];
    setTimeout(() => {
      for (let next = late[0]; next !== undefined && next.dueMs <= performance.now(); next = late[0]) {
        late.shift();
        this.#write(direction, next.bytes);
      }
      if (late[0] !== undefined) this.#deliverLater(direction, late[0].dueMs);
    }, dueMs - performance.now());
  }

  #write(direction: Direction, bytes: Buffer | undefined): void {
    const { to } = this.#sockets[direction];
    if (!to.writable) return;
    if (bytes === undefined) to.end();
    else to.write(bytes);
  }

  /** The last bytes arrive, then nothing: a graceful end here, a reset there. */
  #cut(to: Socket, last: Buffer): void {
    for (const { from } of Object.values(this.#sockets)) from.pause();
    to.end(last, () => setTimeout(() => this.reset(), 20));
  }
}
