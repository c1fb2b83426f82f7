/** What an adapter makes of a client library. Two libraries in two versions fit behind this; nothing here knows them. */

export type Command = readonly [string, ...string[]];

/** A way to the server: one socket, or a client that manages several (Cluster, the user's own). */
export interface Connection {
  /** Resolves when it can be used; rejects with the reason when it cannot. */
  ready(): Promise<void>;
  /** Sends one command, rejects with what the library rejects with. `key`, as written, finds the node in a Cluster. */
  send(command: Command, key?: string): Promise<unknown>;
  /** Turns it into a connection for one channel. Resolves when the server has confirmed it. */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  /** Whether its socket keeps the process alive; at first it does not. Does nothing to a client that is not ours. */
  keepAlive(on: boolean): void;
  /** Called at most once, when it is gone and will not come back by itself. */
  onEnd(listener: (error: Error) => void): void;
  /** Ends it at once. Does nothing to a client that is not ours. */
  close(): void;
}

/** A deployment as reached through one library. None of these does I/O: the connections do. */
export interface Source {
  readonly library: "ioredis" | "redis";
  readonly cluster: boolean;
  /** What stands before every key on the server (the user's option): patterns of SCAN need it. */
  readonly keyPrefix: string;
  /** The key as it has to be written in a command: with the prefix, unless the library adds it. */
  written(key: string): string;
  /** For ordinary commands: the user's own client, or a new connection of ours. */
  open(): Connection;
  /** A new connection of our own for pub/sub. In a Cluster any node will do. */
  openSubscriber(): Connection;
  /** A new connection of our own to the master that has `key`: what is sent on it goes through one socket in order. */
  openDedicated(key: string): Connection;
  /** Which master has `key`, as far as is known: the same text for the same master. Constant outside of a Cluster. */
  masterOf(key: string): string;
  /** Cluster only: the masters as they are known now, for keyless commands. */
  masters(): readonly Sender[];
  /** Lets go of everything that is ours, once the connections are closed. */
  close(): Promise<void>;
}

export type Sender = Pick<Connection, "send">;

export interface SourceSettings {
  readonly connectTimeoutMs: number;
  /** True: the client was made by us (it is not connected yet), and is closed by us. */
  readonly ours: boolean;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/** The user's client as it is, or a client of ours that manages several sockets and reconnects by itself. */
export class SharedClient implements Connection {
  readonly send: Connection["send"];
  readonly ready: () => Promise<void>;
  readonly keepAlive: (on: boolean) => void;

  constructor(
    send: Connection["send"],
    ready: () => Promise<void> = () => Promise.resolve(),
    keepAlive: (on: boolean) => void = () => {},
  ) {
    this.send = send;
    this.ready = ready;
    this.keepAlive = keepAlive;
  }

  subscribe(): Promise<void> {
    return Promise.reject(new Error("a shared client is not used for pub/sub"));
  }

  onEnd(): void {}
  close(): void {}
}

export function pick<T>(list: readonly T[], random: () => number): T | undefined {
  return list[Math.floor(random() * list.length)];
}
