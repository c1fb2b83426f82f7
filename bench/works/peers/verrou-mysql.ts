/** verrou on MySQL, over knex or kysely, typed by what we use of it. */

export interface VerrouLock {
  acquire(): Promise<boolean>;
  release(): Promise<void>;
}

export interface VerrouLocks {
  createLock(name: string): VerrouLock;
  end(): Promise<void>;
}

interface RawLock {
  acquire(options: { retry: { delay: number; timeout: number } }): Promise<boolean>;
  release(): Promise<void>;
}

interface VerrouPackage {
  readonly Verrou: new (config: object) => {
    use(store: string): { createLock(name: string, ttl: string): RawLock };
  };
}

interface Connected {
  /** What verrou takes. */
  readonly connection: object;
  end(): Promise<void>;
}

/** npm may put peers beside the benches only, where the compiler of the whole does not look: so names, not literals. */
function load<T>(name: string): Promise<T> {
  return import(name) as Promise<T>;
}

export async function verrou(
  driver: "knex" | "kysely",
  url: string,
  connections: number,
  pollMs: number,
): Promise<VerrouLocks> {
  const { Verrou } = await load<VerrouPackage>("@verrou/core");
  const drivers = await load<Record<string, (config: object) => object>>(`@verrou/core/drivers/${driver}`);
  const connected = driver === "knex" ? await overKnex(url, connections) : await overKysely(url, connections);
  const store = drivers[`${driver}Store`]?.({ connection: connected.connection, tableName: `verrou_${driver}` });
  if (store === undefined) throw new Error(`verrou has no ${driver} store`);
  const locks = new Verrou({ default: "main", stores: { main: { driver: store } } });
  // Its stores take no such settings, each acquire does.
  const retry = { delay: pollMs, timeout: 60_000 };
  // It makes its table on the first acquire; many first acquires at once get in each other's way.
  const first = locks.use("main").createLock("first", "30s");
  await first.acquire({ retry });
  await first.release();
  const createLock = (name: string): VerrouLock => {
    const lock = locks.use("main").createLock(name, "30s");
    return { acquire: () => lock.acquire({ retry }), release: () => lock.release() };
  };
  return { createLock, end: () => connected.end() };
}

async function overKnex(url: string, connections: number): Promise<Connected> {
  interface Knex {
    destroy(): Promise<void>;
  }
  const { default: knex } = await load<{ default: (config: object) => Knex }>("knex");
  const { hostname, port, username, password, pathname } = new URL(url);
  const connection = { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) };
  const database = knex({ client: "mysql2", connection, pool: { min: 0, max: connections } });
  return { connection: database, end: () => database.destroy() };
}

async function overKysely(url: string, connections: number): Promise<Connected> {
  interface Kysely {
    destroy(): Promise<void>;
  }
  interface KyselyPackage {
    readonly Kysely: new (config: object) => Kysely;
    readonly MysqlDialect: new (config: object) => object;
  }
  const { Kysely, MysqlDialect } = await load<KyselyPackage>("kysely");
  const { createPool } = await import("mysql2");
  const database = new Kysely({
    dialect: new MysqlDialect({ pool: createPool({ uri: url, connectionLimit: connections }) }),
  });
  return { connection: database, end: () => database.destroy() };
}
