/** The zookeeper engine under test: both recipes, on one node and on an ensemble of three. */
import { startFaultProxy, type FaultProxy, type Filter } from "../../../servers/fault-proxy.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../../servers/zookeeper.ts";
import { startEnsemble, type ZooKeeperEnsemble } from "../../../servers/zookeeper-ensemble.ts";
import { systemClock, type Clock } from "../../../src/engine/clock.ts";
import type { Traits } from "../../../src/engine/engine.ts";
import type { ZooKeeperEngine } from "../../../src/engines/zookeeper/engine.ts";
import { fromUrl, zookeeperEngine } from "../../../src/engines/zookeeper/index.ts";
import { connect, type LeaseOptions, type LockManager } from "../../../src/index.ts";
import type { Subject } from "../../../src/testing/subject.ts";
import { FrameReader } from "../../../src/zookeeper/frames.ts";
import { ZooKeeper } from "../../../src/zookeeper/index.ts";

/** Sessions end in steps of a tick. */
const TICK_MS = 500;
const SYNC_LIMIT = 5;
/** By how much a lease is shorter than its session where a follower may be behind its leader. */
const LAG_MS = (SYNC_LIMIT + 1) * TICK_MS;
const LEASE_MS = 3_000;
const LONGEST_SESSION_MS = 120 * TICK_MS;

export function zookeeperTraits(fair: boolean): Traits {
  return {
    engine: "zookeeper",
    fair,
    shared: fair,
    limits: fair,
    steal: false,
    minHold: false,
    lease: "session",
    bells: "push",
    scope: "network",
    survivesRestart: true,
    survivesFailover: true,
    survivesClockJump: true,
  };
}

/** The servers, one or three, each behind a proxy. */
class Stand {
  readonly proxies: FaultProxy[] = [];
  bellsDropped = false;
  readonly #size: number;
  #ensemble: ZooKeeperEnsemble | undefined;
  #single: ZooKeeperServer | undefined;

  constructor(size: number) {
    this.#size = size;
  }

  get servers(): readonly ZooKeeperServer[] {
    return this.#ensemble?.servers ?? (this.#single === undefined ? [] : [this.#single]);
  }

  get addresses(): string {
    return this.proxies.map((proxy) => proxy.address).join(",");
  }

  async start(): Promise<void> {
    const options = { tickTimeMs: TICK_MS, syncLimit: SYNC_LIMIT };
    if (this.#size === 1) this.#single = await startZooKeeper(options);
    else this.#ensemble = await startEnsemble(options, this.#size);
    for (const { port } of this.servers)
      this.proxies.push(await startFaultProxy(port, undefined, undefined, () => this.#withoutBells()));
  }

  async stop(): Promise<void> {
    for (const proxy of this.proxies) await proxy.close();
    await this.#ensemble?.stop();
    await this.#single?.stop();
  }

  /** Of an ensemble the leader. */
  async restart(): Promise<void> {
    const server = this.#single ?? (await this.#ensemble?.leader());
    await server?.restart();
  }

  /** How many packets the servers have had from clients. */
  async countPackets(): Promise<number> {
    const answers = await Promise.all(this.servers.map((server) => server.ask("mntr")));
    return answers.reduce((sum, answer) => sum + Number(/^zk_packets_received\t(\d+)$/m.exec(answer)?.[1]), 0);
  }

  /** Takes the notifications out of what a server sends, while bells are to be dropped. */
  #withoutBells(): Filter {
    const frames = new FrameReader(2 ** 26);
    let isText: boolean | undefined;
    return (bytes) => {
      // The answer to a four letter word is no packet: read as a length, its first letters are far too large.
      isText ??= bytes.readInt32BE(0) > 2 ** 16;
      if (isText) return bytes;
      const kept: Buffer[] = [];
      for (const body of frames.frames(bytes)) {
        if (this.bellsDropped && body.readInt32BE(0) === -1) continue;
        const length = Buffer.alloc(4);
        length.writeInt32BE(body.length);
        kept.push(length, Buffer.from(body));
      }
      return Buffer.concat(kept);
    };
  }
}

interface Variant {
  readonly name: string;
  readonly fair: boolean;
  readonly size: number;
}

function zookeeperSubject({ name, fair, size }: Variant): Subject {
  const stand = new Stand(size);
  const lagMs = size === 1 ? 0 : LAG_MS;
  const sessionMs = LEASE_MS + lagMs;
  const root = fair ? "/queue" : "/race";
  const engines = new WeakMap<LockManager, ZooKeeperEngine>();
  const open = async (clock: Clock, defaults: LeaseOptions = {}): Promise<LockManager> => {
    // The lease is the session's: who asks for a longer one gets a session of its own length.
    const wantedMs = typeof defaults.ttlMs === "number" ? defaults.ttlMs + lagMs : sessionMs;
    const sessionTimeoutMs = Math.min(Math.max(wantedMs, sessionMs), LONGEST_SESSION_MS);
    const engine = zookeeperEngine({ servers: stand.addresses, root, fair, sessionTimeoutMs, clock });
    const locks = await connect(engine, defaults);
    engines.set(locks, engine);
    return locks;
  };
  return {
    name,
    traits: zookeeperTraits(fair),
    start: () => stand.start(),
    stop: () => stand.stop(),
    connect: (defaults) => open(systemClock, defaults),
    url: () => `zookeeper://${stand.addresses}${root}?fair=${fair}&sessionTimeoutMs=${sessionMs}`,
    hooks: {
      connectWithClock: open,
      connectNowhere: () => connect(fromUrl("zookeeper://127.0.0.1:1?connectWithinMs=500")),
      async loseSession(locks) {
        const session = engines.get(locks)?.session?.zk.session;
        if (session === undefined) throw new Error("the manager has no session");
        const other = await ZooKeeper.connect(stand.addresses, { session });
        await other.close();
      },
      async freezeServer() {
        for (const server of stand.servers) server.freeze();
      },
      async thawServer() {
        for (const server of stand.servers) server.thaw();
      },
      async cutConnections() {
        for (const proxy of stand.proxies) proxy.reset();
      },
      restartServer: () => stand.restart(),
      async killServer() {
        await Promise.all(stand.servers.map((server) => server.kill()));
        return async () => void (await Promise.all(stand.servers.map((server) => server.restart())));
      },
      async dropBells() {
        stand.bellsDropped = true;
        return async () => {
          stand.bellsDropped = false;
        };
      },
      async loseReplies() {
        for (const proxy of stand.proxies) proxy.set({ toClient: "drop" });
        return async () => {
          // TCP loses nothing in the middle: a connection that lost a reply is lost with it.
          for (const proxy of stand.proxies) {
            proxy.set({ toClient: "pass" });
            proxy.reset();
          }
        };
      },
      countCommands: () => stand.countPackets(),
    },
    ttlMs: LEASE_MS,
    // A dead holder's session lasts longer than the lease that it could rely on.
    roundingMs: lagMs + 2 * TICK_MS,
    patienceMs: 45_000,
  };
}

export const subjects: readonly Subject[] = [
  zookeeperSubject({ name: "zookeeper, one node", fair: true, size: 1 }),
  zookeeperSubject({ name: "zookeeper, fair: false, one node", fair: false, size: 1 }),
  zookeeperSubject({ name: "zookeeper, ensemble of three", fair: true, size: 3 }),
  zookeeperSubject({ name: "zookeeper, fair: false, ensemble of three", fair: false, size: 3 }),
];
