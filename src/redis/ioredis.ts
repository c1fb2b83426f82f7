/** Connections through `ioredis`, versions 5 and 6. Typed by what is used of it; the library is never imported here. */
import { pick, SharedClient, type Command, type Connection, type Source, type SourceSettings } from "./connection.ts";
import { hashSlot } from "./slot.ts";

/** What a client for one server, a Sentinel client and a Cluster have in common. */
interface IoredisCommon {
  readonly isCluster: boolean;
  readonly options: object;
  readonly status: string;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  listenerCount(event: string): number;
  connect(): Promise<unknown>;
  disconnect(): void;
}

/** An ioredis `Redis`: one server, or the master that Sentinels name. */
export interface IoredisClient extends IoredisCommon {
  duplicate(override?: object): IoredisClient;
}

/** An ioredis `Cluster`. */
export interface IoredisCluster extends IoredisCommon {
  readonly slots: readonly (readonly string[])[];
  nodes(role: "master"): IoredisClient[];
}

/** Our own connections end when they break (`Link` opens the next), and tell so at once. */
const OWN_OPTIONS = {
  lazyConnect: true,
  retryStrategy: null,
  sentinelRetryStrategy: null,
  reconnectOnError: null,
  enableOfflineQueue: true,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  maxRetriesPerRequest: null,
  readOnly: false,
  monitor: false,
  stringNumbers: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  keepAlive: 10_000,
  disconnectTimeout: 50,
} as const;

/** The source for one server or for a Sentinel client. A client of ours is only the pattern: it never connects itself. */
export function ioredisSource(client: IoredisClient, { connectTimeoutMs, ours }: SourceSettings): Source {
  const openOwn = () => new OwnConnection(client.duplicate({ ...OWN_OPTIONS, connectTimeout: connectTimeoutMs }));
  return {
    library: "ioredis",
    cluster: false,
    keyPrefix: keyPrefixOf(client),
    written: (key) => key,
    open: ours ? openOwn : () => new SharedClient(together(client)),
    openSubscriber: openOwn,
    openDedicated: openOwn,
    masterOf: () => "",
    masters: () => [],
    close: () => Promise.resolve(ours ? client.disconnect() : undefined),
  };
}

/** The source for a Cluster. */
export function ioredisClusterSource(cluster: IoredisCluster, settings: SourceSettings): Source {
  const { connectTimeoutMs, ours, random } = settings;
  const keyPrefix = keyPrefixOf(cluster);
  const openOn = (node: IoredisClient | undefined) => {
    if (node === undefined) throw new Error("no such node of the Cluster is known yet");
    // The node's own options carry what the user set (login, TLS) except the prefix, which the Cluster adds itself.
    return new OwnConnection(node.duplicate({ ...OWN_OPTIONS, connectTimeout: connectTimeoutMs, keyPrefix }));
  };
  const masterOf = (key: string) => cluster.slots[hashSlot(keyPrefix + key)]?.[0] ?? "";
  const connect = async () => {
    if (ours && cluster.status === "wait") await cluster.connect();
    else if (cluster.status !== "ready") await cluster.call("ping");
  };
  return {
    library: "ioredis",
    cluster: true,
    keyPrefix,
    written: (key) => key,
    open: () =>
      new SharedClient(
        (command) => cluster.call(...command),
        connect,
        (on) => ours && cluster.nodes("master").forEach((node) => keepSocketAlive(node, on)),
      ),
    openSubscriber: () => openOn(pick(cluster.nodes("master"), random)),
    openDedicated: (key) => openOn(cluster.nodes("master").find((node) => addressOf(node) === masterOf(key))),
    masterOf,
    masters: () => cluster.nodes("master").map((node) => ({ send: (command: Command) => node.call(...command) })),
    close: () => Promise.resolve(ours ? cluster.disconnect() : undefined),
  };
}

interface Corkable {
  cork(): void;
  uncork(): void;
}

/** Words of a command that is worth a system call of its own. */
const LARGE = 32;

/**
 * Sends the first command of a turn of the event loop at once, and those behind it with one system call at the end of
 * the turn: the library makes one of each command, which is most of what a command costs here. Nothing waits longer
 * than for the promises that are ready to go on; a large command does not wait.
 */
function together(client: IoredisClient): (command: Command) => Promise<unknown> {
  let corked: Corkable | undefined;
  const uncork = (): void => {
    corked?.uncork();
    corked = undefined;
  };
  return (command) => {
    if (command.length >= LARGE) uncork();
    const sent = client.call(...command);
    if (command.length >= LARGE) return sent;
    const { stream } = client as { stream?: Corkable };
    if (corked === undefined && typeof stream?.cork === "function") {
      corked = stream;
      stream.cork();
      process.nextTick(uncork);
    }
    return sent;
  };
}

/** One socket of ours. */
class OwnConnection implements Connection {
  readonly send: Connection["send"];
  readonly #client: IoredisClient;
  #lastError: Error | undefined;
  #alive = false;

  constructor(client: IoredisClient) {
    this.#client = client;
    this.send = together(client);
    client.on("error", (error) => (this.#lastError = error as Error));
    client.on("connect", () => this.keepAlive(this.#alive));
  }

  async ready(): Promise<void> {
    try {
      await this.#client.connect();
    } catch (error) {
      // The library rejects with "Connection is closed"; why stands in the event before it.
      throw this.#lastError ?? error;
    }
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#client.on("message", (_channel, message) => onMessage(String(message)));
    await this.#client.subscribe(channel);
  }

  keepAlive(on: boolean): void {
    this.#alive = on;
    keepSocketAlive(this.#client, on);
  }

  onEnd(listener: (error: Error) => void): void {
    const tell = () => listener(this.#lastError ?? new Error("the connection was closed"));
    if (this.#client.status === "end") tell();
    else this.#client.on("end", tell);
  }

  close(): void {
    // On a client that has ended already this would start a timer that keeps the process alive.
    if (this.#client.status !== "end") this.#client.disconnect();
  }
}

/** Whether the present socket of a client of ours keeps the process alive. */
export function keepSocketAlive(client: IoredisClient, on: boolean): void {
  const { stream } = client as { stream?: { ref?(): void; unref?(): void } };
  if (on) stream?.ref?.();
  else stream?.unref?.();
}

function keyPrefixOf(client: IoredisCommon): string {
  const { keyPrefix } = client.options as { keyPrefix?: unknown };
  return typeof keyPrefix === "string" ? keyPrefix : "";
}

function addressOf(node: IoredisClient): string {
  const { host, port } = node.options as { host?: unknown; port?: unknown };
  return `${String(host)}:${String(port)}`;
}
