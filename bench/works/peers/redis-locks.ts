/** The peers on Redis, each as a function from a name to its release, typed by what we use of them. */

export type Release = () => Promise<unknown>;
export type Lock = (name: string) => Promise<Release>;

export interface Peer {
  readonly lock: Lock;
  readonly stop: () => Promise<unknown>;
}

const TTL_MS = 30_000;
const PATIENCE_MS = 120_000;

/** npm may put peers beside the benches only, where the compiler of the whole does not look: so names, not literals. */
function load<T>(name: string): Promise<T> {
  return import(name) as Promise<T>;
}

interface Client {
  disconnect(): void;
}

async function ioredis(port: number): Promise<Client> {
  const { Redis } = await load<{ Redis: new (port: number) => Client }>("ioredis");
  return new Redis(port);
}

interface Unlockable {
  unlock(): Promise<unknown>;
  release(): Promise<unknown>;
}

/** redlock 4 and 5 have the same settings; `pollMs` is their pause between attempts. */
async function redlock(version: 4 | 5, port: number, pollMs: number): Promise<Peer> {
  interface Redlock {
    lock(name: string, ttlMs: number): Promise<Unlockable>;
    acquire(names: string[], ttlMs: number): Promise<Unlockable>;
  }
  const { default: Redlock } = await load<{ default: new (clients: Client[], options: object) => Redlock }>(
    `redlock${version}`,
  );
  const client = await ioredis(port);
  const attempts = Math.ceil(PATIENCE_MS / pollMs);
  const locks = new Redlock([client], { retryCount: attempts, retryDelay: pollMs, retryJitter: 0 });
  const lock: Lock = async (name) => {
    if (version === 4) {
      const held = await locks.lock(name, TTL_MS);
      return () => held.unlock();
    }
    const held = await locks.acquire([name], TTL_MS);
    return () => held.release();
  };
  return { lock, stop: async () => client.disconnect() };
}

async function redlockUniversal(port: number, pollMs: number): Promise<Peer> {
  interface Held {
    acquire(): Promise<unknown>;
    release(handle: unknown): Promise<unknown>;
  }
  const library = await load<{
    createLock(options: object): Held;
    IoredisAdapter: new (client: Client) => object;
  }>("redlock-universal");
  const client = await ioredis(port);
  const adapter = new library.IoredisAdapter(client);
  const retry = { retryAttempts: Math.ceil(PATIENCE_MS / pollMs), retryDelay: pollMs };
  return {
    lock: async (name) => {
      const lock = library.createLock({ adapter, key: name, ttl: TTL_MS, ...retry });
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    stop: async () => client.disconnect(),
  };
}

async function redisSemaphore(port: number, pollMs: number): Promise<Peer> {
  interface Held {
    acquire(): Promise<void>;
    release(): Promise<void>;
  }
  const { Mutex } = await load<{ Mutex: new (client: Client, name: string, options: object) => Held }>(
    "redis-semaphore",
  );
  const client = await ioredis(port);
  const options = { lockTimeout: TTL_MS, acquireTimeout: PATIENCE_MS, retryInterval: pollMs };
  return {
    lock: async (name) => {
      const mutex = new Mutex(client, name, options);
      await mutex.acquire();
      return () => mutex.release();
    },
    stop: async () => client.disconnect(),
  };
}

async function verrouRedis(port: number, pollMs: number): Promise<Peer> {
  interface Held {
    acquire(): Promise<boolean>;
    release(): Promise<void>;
  }
  const { Verrou } = await load<{
    Verrou: new (config: object) => { use(store: string): { createLock(name: string, ttl: string): Held } };
  }>("@verrou/core");
  const { redisStore } = await load<{ redisStore: (options: object) => object }>("@verrou/core/drivers/redis");
  const client = await ioredis(port);
  const store = { driver: redisStore({ connection: client }), retry: { delay: pollMs, timeout: PATIENCE_MS } };
  const locks = new Verrou({ default: "main", stores: { main: store } });
  return {
    lock: async (name) => {
      const lock = locks.use("main").createLock(name, "30s");
      await lock.acquire();
      return () => lock.release();
    },
    stop: async () => client.disconnect(),
  };
}

/** The only one that is woken, by pub/sub; it never closes the connection that it listens on, so we do. */
async function simpleRedisMutex(port: number): Promise<Peer> {
  interface NodeRedis {
    connect(): Promise<void>;
    close(): Promise<void>;
    duplicate(...options: unknown[]): NodeRedis;
  }
  const { createClient } = await load<{ createClient: (options: object) => NodeRedis }>("redis");
  const { lock } = await load<{ lock: (client: object, name: string, options: object) => Promise<Release> }>(
    "simple-redis-mutex",
  );
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  const opened: NodeRedis[] = [client];
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (...options) => {
    const another = duplicate(...options);
    opened.push(another);
    return another;
  };
  await client.connect();
  // What it leaves behind when its connections close rejects with nobody listening.
  process.on("unhandledRejection", (error) => {
    if (!/closed|Disconnects|ECONNRESET/.test(String(error))) throw error;
  });
  return {
    lock: (name) => lock(client, name, { timeout: TTL_MS }),
    stop: () => Promise.allSettled(opened.map((each) => each.close())),
  };
}

/** By name; `pollMs` is how often the pollers ask. */
export const RIVALS: Readonly<Record<string, (port: number, pollMs: number) => Promise<Peer>>> = {
  "redlock 4": (port, pollMs) => redlock(4, port, pollMs),
  "redlock 5 beta": (port, pollMs) => redlock(5, port, pollMs),
  "redlock-universal": redlockUniversal,
  "redis-semaphore": redisSemaphore,
  verrou: verrouRedis,
  "simple-redis-mutex": simpleRedisMutex,
};
