/** One private Redis server on 127.0.0.1, for tests, faults and benchmarks. Starts in about 50 ms. */
import { existsSync } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createCertificate, type Certificate } from "./certificate.ts";
import { createClockShim, type ClockShim } from "./clock-shim.ts";
import { ensureDebianPackage, freePort, startProcess, temporaryDirectory } from "./server-process.ts";
import type { ServerProcess, TemporaryDirectory } from "./server-process.ts";

export interface RedisServerOptions {
  /** Append-only file, written through at every command: a restart keeps everything acknowledged. Default: no. */
  readonly durable?: boolean | undefined;
  /** Password of the default user. */
  readonly password?: string | undefined;
  /** Further users: name -> the rules of an `ACL SETUSER`, for example `on >secret ~holdfast:* +evalsha`. */
  readonly users?: Readonly<Record<string, string>> | undefined;
  /** Speaks TLS only, with a certificate of a private authority. Default: no. */
  readonly tls?: boolean | undefined;
  /** Makes `setClockOffset` work. Default: no. */
  readonly clock?: boolean | undefined;
  /** Further lines of the configuration file. */
  readonly settings?: readonly string[] | undefined;
  /** Starts as a Sentinel instead of a server. */
  readonly sentinel?: boolean | undefined;
}

export interface RedisServer {
  readonly port: number;
  readonly pid: number;
  /** `redis://127.0.0.1:PORT` or `rediss://…`, without credentials. */
  readonly url: string;
  /** With `tls`: what a client has to trust. */
  readonly certificate: Certificate | undefined;
  /** What the server wrote. */
  output(): string;
  /** Runs one command as the default user, on a connection of its own that is kept. */
  command(...args: readonly (string | number)[]): Promise<unknown>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL if it runs, then starts again on the same port: with its data if it is durable, otherwise empty. */
  restart(): Promise<void>;
  /** The same without any data. */
  restartEmpty(): Promise<void>;
  /** Makes a replica a master. */
  promote(): Promise<void>;
  /** Moves the server's wall clock to this far from the true one. Needs `clock: true`. */
  setClockOffset(offsetMs: number): Promise<void>;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  await ensureDebianPackage({ what: "Redis", packages: ["redis-server"], present: () => find() !== undefined });
  const directory = await temporaryDirectory("redis");
  try {
    const port = await freePort();
    const shim = options.clock === true ? await createClockShim(directory.path) : undefined;
    const certificate = options.tls === true ? await createCertificate(directory.path) : undefined;
    const server = new PrivateRedis(port, directory, options, shim, certificate);
    await server.start();
    return server;
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

function find(): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(":").concat("/usr/bin", "/usr/local/bin");
  return directories.map((directory) => join(directory, "redis-server")).find((path) => existsSync(path));
}

class PrivateRedis implements RedisServer {
  readonly port: number;
  readonly url: string;
  readonly certificate: Certificate | undefined;
  readonly #directory: TemporaryDirectory;
  readonly #options: RedisServerOptions;
  readonly #shim: ClockShim | undefined;
  #process: ServerProcess | undefined;
  #admin: Redis | undefined;

  constructor(
    port: number,
    directory: TemporaryDirectory,
    options: RedisServerOptions,
    shim: ClockShim | undefined,
    certificate: Certificate | undefined,
  ) {
    this.port = port;
    this.url = `${certificate === undefined ? "redis" : "rediss"}://127.0.0.1:${port}`;
    this.certificate = certificate;
    this.#directory = directory;
    this.#options = options;
    this.#shim = shim;
  }

  async start(): Promise<void> {
    const file = join(this.#directory.path, "redis.conf");
    await mkdir(this.#data, { recursive: true });
    await writeFile(file, this.#settings().join("\n") + "\n");
    await chmod(file, 0o600);
    this.#process = await startProcess({
      name: this.#options.sentinel === true ? "redis-sentinel" : "redis-server",
      command: find() ?? "redis-server",
      args: this.#options.sentinel === true ? [file, "--sentinel"] : [file],
      cwd: this.#directory.path,
      env: this.#shim?.env,
      ready: () => this.#answers(),
    });
  }

  get pid(): number {
    return this.#running.pid;
  }

  output(): string {
    return this.#running.output();
  }

  async command(...args: readonly (string | number)[]): Promise<unknown> {
    const [name = "PING", ...rest] = args;
    this.#admin ??= this.#connect();
    return this.#admin.call(String(name), ...rest.map(String));
  }

  async kill(): Promise<void> {
    this.#disconnect();
    await this.#running.kill();
  }

  freeze(): void {
    this.#running.freeze();
  }

  thaw(): void {
    this.#running.thaw();
  }

  async restart(): Promise<void> {
    this.#disconnect();
    await this.#running.restart();
  }

  async restartEmpty(): Promise<void> {
    this.#disconnect();
    await this.#running.restart(async () => {
      await rm(this.#data, { recursive: true, force: true });
      await mkdir(this.#data);
    });
  }

  async promote(): Promise<void> {
    await this.command("REPLICAOF", "NO", "ONE");
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

  #settings(): string[] {
    const { durable, password, users = {}, settings = [], sentinel } = this.#options;
    const lines = ["bind 127.0.0.1", "protected-mode no", `dir ${this.#data}`, "daemonize no"];
    if (this.certificate === undefined) lines.push(`port ${this.port}`);
    else {
      lines.push("port 0", `tls-port ${this.port}`, "tls-auth-clients no", "tls-replication yes");
      lines.push(`tls-ca-cert-file ${this.certificate.authorityFile}`);
      lines.push(`tls-cert-file ${this.certificate.certificateFile}`, `tls-key-file ${this.certificate.keyFile}`);
    }
    if (password !== undefined) lines.push(`requirepass ${password}`);
    for (const [name, rules] of Object.entries(users)) lines.push(`user ${name} ${rules}`);
    if (sentinel !== true) {
      lines.push('save ""', "repl-diskless-sync-delay 0", "repl-ping-replica-period 1");
      if (durable === true) lines.push("appendonly yes", "appendfsync always");
    }
    return [...lines, ...settings];
  }

  #connect(): Redis {
    const { password } = this.#options;
    const admin = new Redis({
      host: "127.0.0.1",
      port: this.port,
      ...(password === undefined ? {} : { password }),
      ...(this.certificate === undefined ? {} : { tls: { ca: this.certificate.authority } }),
      enableReadyCheck: false,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
    });
    admin.on("error", () => {}); // every command that fails says so itself
    admin.once("end", () => {
      if (this.#admin === admin) this.#admin = undefined;
    });
    return admin;
  }

  #disconnect(): void {
    this.#admin?.disconnect();
    this.#admin = undefined;
  }

  async #answers(): Promise<boolean> {
    const probe = this.#connect();
    try {
      return (await probe.ping()) === "PONG";
    } finally {
      probe.disconnect();
    }
  }
}
