/** One private PostgreSQL server on 127.0.0.1, for tests. Ready in about two seconds; never a service of the system. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chmod, chown } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { ensureDebianPackage, freePort, startProcess, temporaryDirectory } from "./server-process.ts";
import type { ServerProcess, TemporaryDirectory } from "./server-process.ts";

const run = promisify(execFile);

export interface PostgresServer {
  readonly port: number;
  /** `postgres://holdfast@127.0.0.1:PORT/postgres`: a superuser; everybody on this machine is let in. */
  readonly url: string;
  /** What the server wrote. */
  output(): string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGKILL if it runs, then starts again on the same port with its data. */
  restart(): Promise<void>;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
  await ensureDebianPackage({ what: "PostgreSQL", packages: ["postgresql"], present: () => programs() !== undefined });
  const directory = await temporaryDirectory("postgres");
  try {
    const server = new PrivatePostgres(await freePort(), directory);
    await server.start();
    return server;
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

const DEBIAN_VERSIONS = "/usr/lib/postgresql";

/** The directory with `initdb` and `postgres`: the newest version that Debian has put there, or one on the PATH. */
function programs(): string | undefined {
  const versions = existsSync(DEBIAN_VERSIONS) ? readdirSync(DEBIAN_VERSIONS) : [];
  const newest = versions.sort((left, right) => Number(right) - Number(left));
  const directories = [
    ...newest.map((version) => join(DEBIAN_VERSIONS, version, "bin")),
    ...(process.env["PATH"] ?? "").split(":"),
  ];
  return directories.find((path) => existsSync(join(path, "initdb")) && existsSync(join(path, "postgres")));
}

/** PostgreSQL refuses to run as root: then it runs as the user that Debian's package has made. */
async function user(): Promise<{
  readonly prefix: readonly string[];
  readonly ids: readonly [number, number] | undefined;
}> {
  if (process.getuid?.() !== 0) return { prefix: [], ids: undefined };
  const [uid, gid] = await Promise.all(
    ["-u", "-g"].map(async (flag) => Number((await run("id", [flag, "postgres"])).stdout)),
  );
  if (uid === undefined || gid === undefined) throw new Error("there is no user postgres");
  return {
    prefix: ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--"],
    ids: [uid, gid],
  };
}

class PrivatePostgres implements PostgresServer {
  readonly port: number;
  readonly url: string;
  readonly #directory: TemporaryDirectory;
  #process: ServerProcess | undefined;

  constructor(port: number, directory: TemporaryDirectory) {
    this.port = port;
    this.url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    this.#directory = directory;
  }

  async start(): Promise<void> {
    const bin = programs() ?? "";
    const data = join(this.#directory.path, "data");
    const { prefix, ids } = await user();
    if (ids !== undefined) {
      await chown(this.#directory.path, ...ids);
      await chmod(this.#directory.path, 0o700);
    }
    const initdb = ["-D", data, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
    const [first, ...others] = [...prefix, join(bin, "initdb"), ...initdb];
    await run(first ?? "", others, { cwd: this.#directory.path });
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      shared_buffers: "16MB",
      fsync: "off",
    };
    const server = [...prefix, join(bin, "postgres"), "-D", data, "-p", String(this.port)];
    for (const [name, value] of Object.entries(settings)) server.push("-c", `${name}=${value}`);
    const [command = "postgres", ...args] = server;
    this.#process = await startProcess({
      name: "postgres",
      command,
      args,
      cwd: this.#directory.path,
      ready: () => this.#answers(),
    });
  }

  output(): string {
    return this.#running.output();
  }

  async kill(): Promise<void> {
    await this.#running.kill();
  }

  async restart(): Promise<void> {
    await this.#running.restart();
  }

  async stop(): Promise<void> {
    await this.#process?.stop(); // its other processes end with it
    await this.#directory.remove();
  }

  get #running(): ServerProcess {
    if (this.#process === undefined) throw new Error("the server has not been started");
    return this.#process;
  }

  async #answers(): Promise<boolean> {
    const probe = new Client({ connectionString: this.url });
    probe.on("error", () => {});
    try {
      await probe.connect();
      return true;
    } finally {
      await probe.end().catch(() => {});
    }
  }
}
