/** Connections through `redis` (node-redis), versions 5 and 6. Typed by what is used of it, never imported here. */
import { pick, SharedClient, type Command, type Connection, type Source, type SourceSettings } from "./connection.ts";
import { RedisConfigError } from "./errors.ts";
import { hashSlot } from "./slot.ts";

type Listener = (message: string, channel: string) => unknown;

interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  listenerCount(event: string): number;
}

/** What `createClient()` returns. */
export interface NodeRedisClient extends Emitter {
  readonly isOpen: boolean;
  readonly options?: object | undefined;
  connect(): Promise<unknown>;
  destroy(): void;
  ref(): void;
  unref(): void;
  duplicate(overrides?: object): NodeRedisClient;
  sendCommand(args: readonly string[], options?: object): Promise<unknown>;
  subscribe(channel: string, listener: Listener): Promise<unknown>;
}

/** What `createCluster()` returns. */
export interface NodeRedisCluster extends Emitter {
  readonly isOpen: boolean;
  readonly slots: readonly { readonly master: NodeOfCluster }[];
  readonly masters: readonly NodeOfCluster[];
  connect(): Promise<unknown>;
  destroy(): unknown;
  nodeClient(node: never): NodeRedisClient | Promise<NodeRedisClient>;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
    options?: object,
  ): Promise<unknown>;
}

interface NodeOfCluster {
  readonly address: string;
}

/** What `createSentinel()` returns. */
export interface NodeRedisSentinel extends Emitter {
  readonly isOpen: boolean;
  sendCommand(isReadonly: boolean | undefined, args: string[], options?: object): Promise<unknown>;
  subscribe(channel: string, listener: Listener): Promise<unknown>;
  unsubscribe(channel: string, listener: never): Promise<unknown>;
}

/** Whatever the user maps replies to (Buffers, say), ours come as they are by default. */
const PLAIN = { typeMapping: undefined } as const;

/**
 * The source for one server. `pattern` makes or finds the client from which our own connections are duplicated: by
 * default `client` itself.
 */
export function nodeRedisSource(
  client: NodeRedisClient,
  { connectTimeoutMs, ours }: SourceSettings,
  pattern: () => Promise<NodeRedisClient> = () => Promise.resolve(client),
): Source {
  const openOwn = () => new OwnConnection(async () => ownClient(await pattern(), connectTimeoutMs));
  const keyPrefix = keyPrefixOf(client);
  return {
    library: "redis",
    cluster: false,
    keyPrefix,
    written: (key) => keyPrefix + key,
    open: ours ? openOwn : () => new SharedClient((command) => client.sendCommand(command, PLAIN)),
    openSubscriber: openOwn,
    openDedicated: openOwn,
    masterOf: () => "",
    masters: () => [],
    close: () => Promise.resolve(),
  };
}

/** The source for a Cluster. */
export function nodeRedisClusterSource(cluster: NodeRedisCluster, settings: SourceSettings): Source {
  const { connectTimeoutMs, ours, random } = settings;
  const keyPrefix = keyPrefixOf(cluster);
  const openOn = (node: NodeOfCluster | undefined) =>
    new OwnConnection(async () => {
      if (node === undefined) throw new Error("no such node of the Cluster is known yet");
      return ownClient(await cluster.nodeClient(node as never), connectTimeoutMs);
    });
  const masterOf = (key: string) => cluster.slots[hashSlot(keyPrefix + key)]?.master;
  return {
    library: "redis",
    cluster: true,
    keyPrefix,
    written: (key) => keyPrefix + key,
    open: () =>
      new SharedClient(
        (command, key) => cluster.sendCommand(key, false, [...command], PLAIN),
        async () => void (ours && !cluster.isOpen && (await cluster.connect())),
        (on) => ours && keepNodesAlive(cluster, on),
      ),
    openSubscriber: () => openOn(pick(cluster.masters, random)),
    openDedicated: (key) => openOn(masterOf(key)),
    masterOf: (key) => masterOf(key)?.address ?? "",
    masters: () =>
      cluster.masters.map((node) => ({
        send: async (command: Command) => (await cluster.nodeClient(node as never)).sendCommand(command, PLAIN),
      })),
    close: async () => void (ours && cluster.isOpen && (await cluster.destroy())),
  };
}

/** Whether the sockets of a Cluster client of ours keep the process alive. */
export function keepNodesAlive(cluster: NodeRedisCluster, on: boolean): void {
  for (const node of cluster.masters) {
    const { client } = node as { client?: NodeRedisClient };
    if (on) client?.ref();
    else client?.unref();
  }
}

/** The source for a Sentinel client of the user's. (From a URL we ask the Sentinels ourselves.) */
export function nodeRedisSentinelSource(sentinel: NodeRedisSentinel): Source {
  const keyPrefix = keyPrefixOf(sentinel);
  return {
    library: "redis",
    cluster: false,
    keyPrefix,
    written: (key) => keyPrefix + key,
    open: () => new SharedClient((command) => sentinel.sendCommand(false, [...command], PLAIN)),
    openSubscriber: () => new SentinelSubscriber(sentinel),
    openDedicated: () => {
      throw new RedisConfigError(
        "a Sentinel client of the redis library does not give a connection of our own: " +
          "use a redis+sentinel:// URL or an ioredis client",
      );
    },
    masterOf: () => "",
    masters: () => [],
    close: () => Promise.resolve(),
  };
}

function ownClient(pattern: NodeRedisClient, connectTimeoutMs: number): NodeRedisClient {
  const { socket } = (pattern.options ?? {}) as { socket?: object };
  return pattern.duplicate({
    // Our own connections end when they break: `Link` opens the next.
    socket: { ...socket, reconnectStrategy: false, connectTimeout: connectTimeoutMs, socketTimeout: undefined },
    disableOfflineQueue: false,
    commandOptions: undefined,
    clientSideCache: undefined,
    emitInvalidate: undefined,
    readonly: false,
  });
}

/** One socket of ours. */
class OwnConnection implements Connection {
  readonly #create: () => Promise<NodeRedisClient>;
  #client: NodeRedisClient | undefined;
  #lastError: Error | undefined;
  #ended: ((error: Error) => void) | undefined;
  #alive = false;
  #closed = false;

  constructor(create: () => Promise<NodeRedisClient>) {
    this.#create = create;
  }

  async ready(): Promise<void> {
    const client = await this.#create();
    if (this.#closed) throw new Error("the connection was closed");
    this.#client = client;
    this.keepAlive(this.#alive);
    client.on("error", (error) => {
      this.#lastError = error as Error;
      if (!client.isOpen) this.#tellEnd();
    });
    await client.connect();
  }

  send(command: Command): Promise<unknown> {
    return this.#opened.sendCommand(command);
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    await this.#opened.subscribe(channel, onMessage);
  }

  keepAlive(on: boolean): void {
    this.#alive = on;
    if (on) this.#client?.ref();
    else this.#client?.unref();
  }

  onEnd(listener: (error: Error) => void): void {
    this.#ended = listener;
    if (this.#client?.isOpen === false) this.#tellEnd();
  }

  close(): void {
    this.#closed = true;
    this.#ended = undefined;
    if (this.#client?.isOpen === true) this.#client.destroy();
  }

  get #opened(): NodeRedisClient {
    if (this.#client === undefined) throw new Error("the connection is not open yet");
    return this.#client;
  }

  #tellEnd(): void {
    const listener = this.#ended;
    this.#ended = undefined;
    listener?.(this.#lastError ?? new Error("the connection was closed"));
  }
}

/** The Sentinel client keeps pub/sub connections itself; when it has moved to another master we subscribe anew. */
class SentinelSubscriber implements Connection {
  readonly #sentinel: NodeRedisSentinel;
  readonly #onChange = (event: unknown): void => {
    if ((event as { readonly type?: unknown }).type !== "MASTER_CHANGE") return;
    this.close();
    this.#ended?.(new Error("the Sentinels have named another master"));
  };
  #channel = "";
  #listener: Listener = () => {};
  #ended: ((error: Error) => void) | undefined;

  constructor(sentinel: NodeRedisSentinel) {
    this.#sentinel = sentinel;
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  send(): Promise<unknown> {
    return Promise.reject(new Error("this connection is for pub/sub only"));
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#channel = channel;
    this.#listener = onMessage;
    this.#sentinel.on("topology-change", this.#onChange);
    await this.#sentinel.subscribe(channel, onMessage);
  }

  keepAlive(): void {}

  onEnd(listener: (error: Error) => void): void {
    this.#ended = listener;
  }

  close(): void {
    this.#sentinel.off("topology-change", this.#onChange);
    // Without a server there is nothing to unsubscribe from.
    this.#sentinel.unsubscribe(this.#channel, this.#listener as never).catch(() => {});
  }
}

/** The option exists in version 6 and is applied to its typed commands only. */
function keyPrefixOf(client: object): string {
  const { _keyPrefix: keyPrefix } = client as { _keyPrefix?: unknown };
  return typeof keyPrefix === "string" ? keyPrefix : "";
}
