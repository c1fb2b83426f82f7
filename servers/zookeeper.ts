/** Private ZooKeeper servers on 127.0.0.1, for tests, faults and benchmarks: one node, or an ensemble. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createCertificate, type Certificate } from "./certificate.ts";
import {
  ensureDebianPackage,
  freePort,
  type ServerProcess,
  startProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from "./server-process.ts";
import { type CounterSnapshot, writeCounterSnapshot } from "./zookeeper-snapshot.ts";

export interface ZooKeeperServerOptions {
  /** Default 500 ms; sessions last 2 … 120 ticks. */
  readonly tickTimeMs?: number | undefined;
  /** After how many ticks a follower without a leader gives up, and the other way round. Default 10. */
  readonly syncLimit?: number | undefined;
  /** Also listens with TLS, with a certificate of a private authority. Default: no. */
  readonly tls?: boolean | undefined;
  /** Starts with a node whose sequence counter stands at some number. */
  readonly snapshot?: CounterSnapshot | undefined;
  /** Further settings, for `zoo.cfg`. */
  readonly settings?: Readonly<Record<string, string | number>> | undefined;
  /** Further options of the virtual machine: `-Dzookeeper.forceSync=no`. */
  readonly java?: readonly string[] | undefined;
}

export type ZooKeeperMode = "standalone" | "leader" | "follower" | "observer";

export interface ZooKeeperServer {
  readonly port: number;
  /** With `tls`. */
  readonly securePort: number | undefined;
  readonly certificate: Certificate | undefined;
  /** `host:port`, for a client. */
  readonly address: string;
  readonly pid: number;
  readonly running: boolean;
  output(): string;
  /** Undefined while it does not serve. */
  mode(): Promise<ZooKeeperMode | undefined>;
  /** Asks a "four letter word": `srvr`, `mntr`, `cons` … */
  ask(word: string): Promise<string>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and new ones are accepted, nothing answers. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL if it runs, then starts again on the same port with its data, and waits until it serves. */
  restart(): Promise<void>;
  /** The same without any data. */
  restartEmpty(): Promise<void>;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

/** Where a member of an ensemble runs and what it says to the others. */
export interface Member {
  readonly id: number;
  /** The addresses of all members, `server.N=…` lines. */
  readonly lines: readonly string[];
  /** Where it listens. Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** What comes before `java`: `ip netns exec NAME`. */
  readonly enter?: readonly string[] | undefined;
}

const JARS = "/usr/share/java";
const CLASS_PATH = ["zookeeper", "slf4j-simple", "netty-codec", "netty-resolver", "netty-transport-native-unix-common"];

/** Serving after about 0.7 s; 65 MB. */
export async function startZooKeeper(options: ZooKeeperServerOptions = {}, member?: Member): Promise<ZooKeeperServer> {
  await ensureZooKeeper();
  const directory = await temporaryDirectory("zookeeper");
  const server = new PrivateZooKeeper(directory, options, member);
  try {
    await server.prepare();
    await server.start();
    return server;
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

export function ensureZooKeeper(): Promise<void> {
  return ensureDebianPackage({
    what: "ZooKeeper",
    packages: ["libzookeeper-java", "default-jre-headless"],
    present: () => existsSync(`${JARS}/zookeeper.jar`) && java() !== undefined,
  });
}

function java(): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(":").concat("/usr/bin");
  return directories.map((directory) => join(directory, "java")).find((path) => existsSync(path));
}

class PrivateZooKeeper implements ZooKeeperServer {
  readonly #directory: TemporaryDirectory;
  readonly #options: ZooKeeperServerOptions;
  readonly #member: Member | undefined;
  readonly #host: string;
  #process: ServerProcess | undefined;
  port = 0;
  securePort: number | undefined;
  certificate: Certificate | undefined;

  constructor(directory: TemporaryDirectory, options: ZooKeeperServerOptions, member: Member | undefined) {
    this.#directory = directory;
    this.#options = options;
    this.#member = member;
    this.#host = member?.host ?? "127.0.0.1";
  }

  async prepare(): Promise<void> {
    this.port = await freePort();
    if (this.#options.tls === true) {
      this.securePort = await freePort();
      this.certificate = await createCertificate(this.#directory.path);
      const { certificateFile, keyFile } = this.certificate;
      await writeFile(this.#keyStore, (await readFile(keyFile, "utf8")) + (await readFile(certificateFile, "utf8")));
    }
    await this.#prepareData();
  }

  async start(): Promise<void> {
    // Written anew each time: the server itself may change it.
    await writeFile(this.#file, this.#settings().join("\n") + "\n");
    const [command = "java", ...args] = [...(this.#member?.enter ?? []), java() ?? "java", ...this.#arguments()];
    this.#process = await startProcess({
      name: this.#member === undefined ? "zookeeper" : `zookeeper ${this.#member.id}`,
      command,
      args,
      cwd: this.#directory.path,
      ready: async () => (await this.mode()) !== undefined,
      readyTimeoutMs: 90_000, // an election between three machines that start on two busy cores
    });
  }

  get address(): string {
    return `${this.#host}:${this.port}`;
  }

  get pid(): number {
    return this.#running.pid;
  }

  get running(): boolean {
    return this.#process?.running === true;
  }

  output(): string {
    return this.#running.output();
  }

  async mode(): Promise<ZooKeeperMode | undefined> {
    const answer = await this.ask("srvr").catch(() => "");
    return /^Mode: (\w+)$/m.exec(answer)?.[1] as ZooKeeperMode | undefined;
  }

  ask(word: string): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = "";
      const socket = connect({ host: this.#host, port: this.port }, () => socket.write(word));
      socket.setEncoding("utf8").setTimeout(2_000, () => socket.destroy(new Error(`no answer to ${word}`)));
      socket.on("data", (text: string) => (answer += text));
      socket.once("error", reject).once("close", () => resolve(answer));
    });
  }

  kill(): Promise<void> {
    return this.#running.kill();
  }

  freeze(): void {
    this.#running.freeze();
  }

  thaw(): void {
    this.#running.thaw();
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  async restartEmpty(): Promise<void> {
    await this.kill();
    await rm(this.#data, { recursive: true, force: true });
    await this.#prepareData();
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#process?.kill(); // nothing to be kept, and it takes no time
    await this.#directory.remove();
  }

  get #running(): ServerProcess {
    if (this.#process === undefined) throw new Error("the server has not been started");
    return this.#process;
  }

  get #file(): string {
    return join(this.#directory.path, "zoo.cfg");
  }

  get #data(): string {
    return join(this.#directory.path, "data");
  }

  get #keyStore(): string {
    return join(this.#directory.path, "server.pem");
  }

  async #prepareData(): Promise<void> {
    await mkdir(this.#data, { recursive: true });
    if (this.#member !== undefined) await writeFile(join(this.#data, "myid"), `${this.#member.id}\n`);
    if (this.#options.snapshot !== undefined) await writeCounterSnapshot(this.#data, this.#options.snapshot);
  }

  #arguments(): string[] {
    return [
      "-Xmx128m",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      "-XX:-UsePerfData",
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
      "-Dznode.container.checkIntervalMs=500",
      // Members that start together miss each other's first votes; by default they repeat them less and less often.
      "-Dzookeeper.fastleader.maxNotificationInterval=400",
      ...(this.#options.java ?? []),
      "-cp",
      CLASS_PATH.map((name) => `${JARS}/${name}.jar`).join(":"),
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      this.#file,
    ];
  }

  #settings(): string[] {
    const { tickTimeMs = 500, syncLimit = 10, settings = {} } = this.#options;
    const all: Record<string, string | number> = {
      tickTime: tickTimeMs,
      initLimit: 20,
      syncLimit,
      dataDir: this.#data,
      clientPortAddress: this.#host,
      clientPort: this.port,
      minSessionTimeout: 2 * tickTimeMs,
      maxSessionTimeout: 120 * tickTimeMs,
      maxClientCnxns: 0,
      "admin.enableServer": "false",
      "4lw.commands.whitelist": "*",
      extendedTypesEnabled: "true",
      ...this.#tlsSettings(),
      ...settings,
    };
    return [...Object.entries(all).map(([name, value]) => `${name}=${value}`), ...(this.#member?.lines ?? [])];
  }

  #tlsSettings(): Record<string, string | number> {
    if (this.securePort === undefined || this.certificate === undefined) return {};
    return {
      serverCnxnFactory: "org.apache.zookeeper.server.NettyServerCnxnFactory",
      secureClientPort: this.securePort,
      secureClientPortAddress: this.#host,
      "ssl.keyStore.type": "PEM",
      "ssl.keyStore.location": this.#keyStore,
      "ssl.trustStore.type": "PEM",
      "ssl.trustStore.location": this.certificate.authorityFile,
      "ssl.clientAuth": "none",
    };
  }
}
