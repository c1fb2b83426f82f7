/**
 * The zookeeper engine beside Curator, kazoo and the raw requests, on a private server and on an ensemble of three. Each commit
 * waits for the disk of the temporary directory: `TMPDIR=/dev/shm` measures without it, where other programs use the disk too.
 */
import { spawnSync } from "node:child_process";
import { startEnsemble } from "../../servers/zookeeper-ensemble.ts";
import { startZooKeeper } from "../../servers/zookeeper.ts";
import { zookeeper } from "../../src/engines/zookeeper/index.ts";
import { connect } from "../../src/index.ts";
import { ZooKeeper } from "../../src/zookeeper/index.ts";
import { type Contender, type Floor, loop, type Running, type Work } from "../harness.ts";
import { curator, kazoo, type PeerProgram } from "./peers/zookeeper-locks.ts";

interface Started {
  /** Where every client connects to: with three servers, one that follows. */
  readonly address: string;
  stop(): Promise<void>;
}

/** The servers of a work; the last contender to stop stops them. */
class Servers {
  readonly #size: number;
  #starting: Promise<Started> | undefined;
  #users = 0;

  constructor(size: number) {
    this.#size = size;
  }

  async enter(): Promise<string> {
    this.#users++;
    this.#starting ??= this.#start();
    return (await this.#starting).address;
  }

  async leave(): Promise<void> {
    if (--this.#users > 0) return;
    const servers = await this.#starting;
    this.#starting = undefined;
    await servers?.stop();
  }

  async #start(): Promise<Started> {
    // 30 s sessions need no shorter ticks than the usual ones.
    const options = { tickTimeMs: 2_000 };
    if (this.#size === 1) {
      const server = await startZooKeeper(options);
      pin(server.pid);
      return server;
    }
    const ensemble = await startEnsemble(options, this.#size);
    for (const server of ensemble.servers) pin(server.pid);
    await ensemble.leader();
    const [follower] = await ensemble.followers();
    if (follower === undefined) throw new Error("no server follows");
    return { address: follower.address, stop: () => ensemble.stop() };
  }
}

function pin(pid: number): void {
  spawnSync("taskset", ["-a", "-c", "-p", "0", String(pid)]);
}

type Open = (address: string, clients: number) => Promise<Running>;

function contender(servers: Servers, clients: number, name: string, kind: Contender["kind"], open: Open): Contender {
  return {
    name,
    kind,
    async start() {
      const address = await servers.enter();
      try {
        const running = await open(address, clients);
        await running.run(3_000); // a virtual machine needs more than one round to warm up
        return {
          run: (ms) => running.run(ms),
          async stop() {
            await running.stop();
            await servers.leave();
          },
        };
      } catch (error) {
        await servers.leave();
        throw error;
      }
    },
  };
}

/** One node made and deleted on one session, one request at a time: nobody waits for anybody. */
const raw: Open = async (address) => {
  const zk = await ZooKeeper.connect(address, { sessionTimeoutMs: 30_000 });
  return {
    run: (ms) =>
      loop(ms, 1, async () => {
        await zk.create("/raw", "", { mode: "ephemeral" });
        await zk.delete("/raw");
      }),
    stop: () => zk.close(),
  };
};

/** As many sessions as clients, all asking for one name. */
const ours: Open = async (address, clients) => {
  const engine = { servers: address, sessionTimeoutMs: 30_000 };
  const managers = await Promise.all(Array.from({ length: clients }, () => connect(zookeeper(engine))));
  let inside = 0;
  return {
    run: (ms) =>
      loop(ms, clients, async (client) => {
        const lock = await managers[client]?.acquire("bench");
        if (++inside !== 1) throw new Error("two are inside at once");
        inside--;
        await lock?.release();
      }),
    async stop() {
      await Promise.all(managers.map((locks) => locks.close()));
    },
  };
};

function program(start: (servers: string, path: string, clients: number) => Promise<PeerProgram>, path: string): Open {
  return async (address, clients) => {
    const peer = await start(address, path, clients);
    return { run: async (ms) => Number(await peer.ask(`run ${ms}`)), stop: () => peer.stop() };
  };
}

function work(size: number, clients: number, floors: readonly Floor[]): Work {
  const servers = new Servers(size);
  const where = size === 1 ? "one server" : `a follower of ${size} servers`;
  const who = clients === 1 ? "one client" : `${clients} clients on one name`;
  return {
    id: `zookeeper-${size}-${clients}`,
    title: `ZooKeeper, lock and unlock, ${who}, ${where}`,
    unit: "pairs a second",
    floors,
    contenders: [
      contender(servers, clients, "create + delete, one session", "limit", raw),
      contender(servers, clients, "holdfast zookeeper:", "ours", ours),
      contender(servers, clients, "Curator 5 InterProcessMutex", "peer", program(curator, "/curator")),
      contender(servers, clients, "kazoo 2 Lock", "peer", program(kazoo, "/kazoo")),
    ],
  };
}

function floors(limit: number, curatorTimes: number): Floor[] {
  return [
    { than: "limit", atLeast: limit },
    { than: "Curator 5 InterProcessMutex", atLeast: curatorTimes },
    { than: "kazoo 2 Lock", atLeast: 2 },
  ];
}

export async function works(): Promise<readonly Work[]> {
  return [1, 3].flatMap((size) => [work(size, 1, floors(0.9, 1.4)), work(size, 10, floors(0.8, 1.6))]);
}
