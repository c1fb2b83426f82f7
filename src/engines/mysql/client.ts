/** What we use of `mysql2`, typed by its shape: the package is imported only when a connection is made. */
import { readFileSync } from "node:fs";
import { ConfigError } from "../../engine/errors.ts";

/** The header of a statement without rows, or the rows. */
export interface Header {
  readonly affectedRows: number;
  readonly insertId: number | string;
}
export type Row = Readonly<Record<string, unknown>>;
export type Result = Header | readonly Row[];

export interface Connection {
  query(options: { sql: string }, callback: (error: Error | null, results: unknown) => void): unknown;
  execute(
    options: { sql: string; values: unknown[] },
    callback: (error: Error | null, results: unknown) => void,
  ): unknown;
  on(event: "error" | "end", listener: (error?: Error) => void): unknown;
  end(callback: () => void): void;
  destroy(): void;
  readonly stream: { ref?(): unknown; unref?(): unknown; destroy?(): unknown };
}

/** Settings of `mysql2` that say where the server is and who we are. */
export type ConnectionSettings = Readonly<Record<string, unknown>>;

/** A pool of `mysql2`, or of `mysql2/promise`. It is read, never used up and never closed. */
export interface PoolLike {
  readonly config?: object;
  readonly pool?: object;
}

/** What we take over from a pool; how it reads values is its own affair. */
const TAKEN_OVER = [
  "host",
  "port",
  "localAddress",
  "socketPath",
  "stream",
  "user",
  "password",
  "password2",
  "password3",
  "passwordSha1",
  "database",
  "ssl",
  "connectTimeout",
  "insecureAuth",
  "compress",
  "authPlugins",
  "authSwitchHandler",
  "enableCleartextPlugin",
  "connectAttributes",
];

/** The settings of a pool's connections. */
export function poolSettings(pool: PoolLike): ConnectionSettings {
  const given = connectionConfig(pool.pool) ?? connectionConfig(pool);
  if (given === undefined) throw new ConfigError("`pool` is not a pool made by createPool of mysql2 or mysql2/promise");
  const settings = new Map(Object.entries(given));
  return Object.fromEntries(
    TAKEN_OVER.map((key) => [key, settings.get(key)] as const).filter(
      ([, value]) => value !== undefined && value !== false,
    ),
  );
}

function connectionConfig(pool: object | undefined): object | undefined {
  const config: unknown = pool !== undefined && "config" in pool ? pool.config : undefined;
  if (typeof config !== "object" || config === null || !("connectionConfig" in config)) return undefined;
  const { connectionConfig } = config;
  return typeof connectionConfig === "object" && connectionConfig !== null ? connectionConfig : undefined;
}

/** What a URL says besides where the server is. */
export interface UrlOptions {
  readonly settings: ConnectionSettings;
  readonly migrate: boolean | undefined;
}

/**
 * `mysql://user:password@host:port/database` (also `mariadb://`), with `?tls=on` (verified), `tls=insecure`,
 * `ca=/path/to.pem`, `socket=/path/to/socket`, `migrate=false`. Errors never repeat the URL: it may hold a password.
 */
export function urlOptions(url: string): UrlOptions {
  const parsed = URL.parse(url);
  if (parsed === null)
    throw new ConfigError("this mysql: URL cannot be read; use mysql://user:password@host:3306/database");
  const query = parsed.searchParams;
  for (const key of query.keys()) {
    if (!["tls", "ca", "socket", "migrate"].includes(key)) throw new ConfigError(`mysql: URLs have no option ${key}`);
  }
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (database === "")
    throw new ConfigError("a mysql: URL names the database of the locks: mysql://host:3306/database");
  const ssl = tlsOf(query.get("tls"), query.get("ca"));
  const migrate = query.get("migrate");
  if (migrate !== null && migrate !== "true" && migrate !== "false") throw new ConfigError("migrate is true or false");
  const socketPath = query.get("socket");
  return {
    settings: {
      ...(socketPath === null ? { host: parsed.hostname, port: Number(parsed.port || 3306) } : { socketPath }),
      ...(parsed.username === "" ? {} : { user: decodeURIComponent(parsed.username) }),
      ...(parsed.password === "" ? {} : { password: decodeURIComponent(parsed.password) }),
      ...(ssl === undefined ? {} : { ssl }),
      database,
    },
    migrate: migrate === null ? undefined : migrate === "true",
  };
}

function tlsOf(tls: string | null, ca: string | null): object | undefined {
  if (tls === null && ca === null) return undefined;
  if (tls === "insecure") {
    process.emitWarning("tls=insecure: the MySQL server's certificate is not verified", { code: "HOLDFAST_TLS" });
    return { rejectUnauthorized: false };
  }
  if (tls !== null && tls !== "on") throw new ConfigError("tls is on or insecure");
  return ca === null ? { verifyIdentity: true } : { verifyIdentity: true, ca: readFileSync(ca, "utf8") };
}

/** Begins a connection. What goes wrong is told to the first query, or as an `error` event. */
export async function beginConnection(settings: ConnectionSettings): Promise<Connection> {
  const driver = await loadDriver();
  return driver.createConnection({
    ...settings,
    multipleStatements: true,
    supportBigNumbers: true,
    charset: "utf8mb4",
    flags: ["-FOUND_ROWS", "-LOCAL_FILES"],
  });
}

interface Driver {
  createConnection(config: object): Connection;
}

async function loadDriver(): Promise<Driver> {
  try {
    const loaded: { default: Driver } = (await import("mysql2")) as never;
    return loaded.default;
  } catch (error) {
    throw new ConfigError("the mysql engine needs the package mysql2: npm install mysql2", { cause: error });
  }
}
