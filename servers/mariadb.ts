/** One private MariaDB server on 127.0.0.1, for tests, faults and benchmarks. Ready in about a second. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createConnection, type Connection } from "mysql2/promise";
import { createCertificate, type Certificate } from "./certificate.ts";
import { createClockShim, type ClockShim } from "./clock-shim.ts";
import { ensureDebianPackage, freePort, startProcess, temporaryDirectory } from "./server-process.ts";
import type { ServerProcess, TemporaryDirectory } from "./server-process.ts";

const run = promisify(execFile);

export interface MariadbServerOptions {
  /** The zone that the server lives in, for example "Europe/Berlin". Default: UTC. */
  readonly timeZone?: string | undefined;
  /** Refuses connections without TLS; the certificate is of a private authority. Default: no. */
  readonly tls?: boolean | undefined;
  /** Makes `setClockOffset` work. Default: no. */
  readonly clock?: boolean | undefined;
  /** Keeps the data on the disk of temporary files. Default: in memory where there is /dev/shm, which survives a kill as well. */
  readonly disk?: boolean | undefined;
  /** Further lines of the configuration file, section [mariadbd]. */
  readonly settings?: readonly string[] | undefined;
}

export interface MariadbServer {
  readonly port: number;
  readonly pid: number;
  /** `mysql://holdfast:secret@127.0.0.1:PORT/holdfast`: a user with all rights in a database of its own. */
  readonly url: string;
  readonly socketPath: string;
  /** With `tls`: what a client has to trust. */
  readonly certificate: Certificate | undefined;
  /** What the server wrote. */
  output(): string;
  /** Runs statements as a user with all rights, on a connection of its own that is kept; the rows of the last one. */
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** The same URL for another user or database. */
  urlFor(user: string, password: string, database?: string): string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL if it runs, then starts again on the same port with its data. */
  restart(): Promise<void>;
  /** Moves the server's wall clock to this far from the true one. Needs `clock: true`. */
  setClockOffset(offsetMs: number): Promise<void>;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

export async function startMariadb(options: MariadbServerOptions = {}): Promise<MariadbServer> {
  await ensureDebianPackage({
    what: "MariaDB",
    packages: ["mariadb-server"],
    present: () => find("mariadbd") !== undefined && find("mariadb-install-db") !== undefined,
  });
  const memory = options.disk !== true && existsSync(SHARED_MEMORY);
  const directory = await temporaryDirectory("mariadb", memory ? SHARED_MEMORY : undefined);
  try {
    const port = await freePort();
    const shim = options.clock === true ? await createClockShim(directory.path) : undefined;
    const certificate = options.tls === true ? await createCertificate(directory.path) : undefined;
    const server = new PrivateMariadb(port, directory, options, shim, certificate);
    await server.start();
    return server;
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

function find(program: string): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(":").concat("/usr/sbin", "/usr/bin");
  return directories.map((directory) => join(directory, program)).find((path) => existsSync(path));
}

const SHARED_MEMORY = "/dev/shm";
const ADMIN = "holdfast_admin";
const USER = "holdfast";
const PASSWORD = "secret";

class PrivateMariadb implements MariadbServer {
  readonly port: number;
  readonly url: string;
  readonly socketPath: string;
  readonly certificate: Certificate | undefined;
  readonly #directory: TemporaryDirectory;
  readonly #options: MariadbServerOptions;
  readonly #shim: ClockShim | undefined;
  readonly #adminPassword = randomBytes(16).toString("hex");
  #process: ServerProcess | undefined;
  #admin: Connection | undefined;

  constructor(
    port: number,
    directory: TemporaryDirectory,
    options: MariadbServerOptions,
    shim: ClockShim | undefined,
    certificate: Certificate | undefined,
  ) {
    this.port = port;
    this.socketPath = join(directory.path, "socket");
    this.certificate = certificate;
    this.#directory = directory;
    this.#options = options;
    this.#shim = shim;
    this.url = this.urlFor(USER, PASSWORD);
  }

  async start(): Promise<void> {
    const file = join(this.#directory.path, "mariadb.cnf");
    await writeFile(file, this.#settings().join("\n") + "\n", { mode: 0o600 });
    await writeFile(this.#initFile, this.#users().join("\n") + "\n", { mode: 0o600 });
    await mkdir(this.#data, { recursive: true });
    const install = [`--defaults-file=${file}`, "--skip-test-db", "--auth-root-authentication-method=socket"];
    await run(find("mariadb-install-db") ?? "mariadb-install-db", install);
    this.#process = await startProcess({
      name: "mariadbd",
      command: find("mariadbd") ?? "mariadbd",
      args: [`--defaults-file=${file}`],
      cwd: this.#directory.path,
      env: { ...this.#shim?.env, TZ: this.#options.timeZone ?? "UTC" },
      ready: () => this.#answers(),
    });
  }

  get pid(): number {
    return this.#running.pid;
  }

  output(): string {
    return this.#running.output();
  }

  urlFor(user: string, password: string, database = USER): string {
    return `mysql://${user}:${password}@127.0.0.1:${this.port}/${database}`;
  }

  async query(sql: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    this.#admin ??= await this.#connect();
    const [rows] = await this.#admin.query(sql, [...values]);
    const last: unknown = Array.isArray(rows) && rows.some((each) => Array.isArray(each)) ? rows.at(-1) : rows;
    return Array.isArray(last) ? (last as Record<string, unknown>[]) : [];
  }

  async kill(): Promise<void> {
    this.#disconnect();
    await this.#running.kill();
    await rm(this.socketPath, { force: true });
  }

  freeze(): void {
    this.#running.freeze();
  }

  thaw(): void {
    this.#running.thaw();
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.#running.restart();
  }

  async setClockOffset(offsetMs: number): Promise<void> {
    if (this.#shim === undefined) throw new Error("start the server with { clock: true } to move its clock");
    await this.#shim.setOffset(offsetMs);
  }

  async stop(): Promise<void> {
    this.#disconnect();
    await this.#process?.kill(); // nothing here is worth a graceful end
    await this.#directory.remove();
  }

  get #running(): ServerProcess {
    if (this.#process === undefined) throw new Error("the server has not been started");
    return this.#process;
  }

  get #data(): string {
    return join(this.#directory.path, "data");
  }

  get #initFile(): string {
    return join(this.#directory.path, "init.sql");
  }

  #settings(): string[] {
    const lines = [
      "[mariadbd]",
      `user=${userInfo().username}`,
      `datadir=${this.#data}`,
      `socket=${this.socketPath}`,
      `init-file=${this.#initFile}`,
      `pid-file=${join(this.#directory.path, "pid")}`,
      "bind-address=127.0.0.1",
      `port=${this.port}`,
      "skip-name-resolve",
      "skip-log-bin",
      "performance-schema=OFF",
      "innodb-buffer-pool-size=16M",
      "innodb-log-file-size=16M",
      "max-connections=300",
    ];
    if (this.certificate !== undefined) {
      lines.push(`ssl-ca=${this.certificate.authorityFile}`, `ssl-cert=${this.certificate.certificateFile}`);
      lines.push(`ssl-key=${this.certificate.keyFile}`, "require-secure-transport=ON");
    }
    return [...lines, ...(this.#options.settings ?? [])];
  }

  /** Run at every start, before the first connection; one statement a line. */
  #users(): string[] {
    return [
      `CREATE DATABASE IF NOT EXISTS ${USER};`,
      `CREATE USER IF NOT EXISTS ${ADMIN}@'%' IDENTIFIED BY '${this.#adminPassword}';`,
      `GRANT ALL ON *.* TO ${ADMIN}@'%' WITH GRANT OPTION;`,
      `CREATE USER IF NOT EXISTS ${USER}@'%' IDENTIFIED BY '${PASSWORD}';`,
      `GRANT ALL ON ${USER}.* TO ${USER}@'%';`,
    ];
  }

  async #connect(): Promise<Connection> {
    const admin = await createConnection({
      socketPath: this.socketPath,
      user: ADMIN,
      password: this.#adminPassword,
      database: USER,
      multipleStatements: true,
      supportBigNumbers: true,
    });
    admin.on("error", () => {
      if (this.#admin === admin) this.#admin = undefined;
    });
    return admin;
  }

  #disconnect(): void {
    this.#admin?.destroy();
    this.#admin = undefined;
  }

  async #answers(): Promise<boolean> {
    const probe = await this.#connect();
    try {
      await probe.ping();
      return true;
    } finally {
      probe.destroy();
    }
  }
}
