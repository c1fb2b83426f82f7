/**
 * `TMPDIR=/dev/shm taskset -c 1 node bench/zookeeper-layers.ts [--rounds 15] [--ms 400] [--servers 1]`: where the time of a lock and
 * unlock goes in ZooKeeper. One client, one request at a time, from the bare requests up to the lock manager, interleaved in many
 * short rounds; also ten clients on one name. Tells for each pair the time, the requests, and the processor time of both sides.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startEnsemble } from "../servers/zookeeper-ensemble.ts";
import { startZooKeeper, type ZooKeeperServer } from "../servers/zookeeper.ts";
import { zookeeper } from "../src/engines/zookeeper/index.ts";
import { connect } from "../src/index.ts";
import { ZooKeeper } from "../src/zookeeper/index.ts";
import { loop, median } from "./harness.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    ms: { type: "string", default: "400" },
    servers: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const DATA = JSON.stringify({ clientId: "x".repeat(22), host: "a-machine", pid: 12_345 });
const OWNER = "o".repeat(22);
const TICKS_A_SECOND = 100;

interface Layer {
  readonly name: string;
  readonly clients: number;
  readonly pair: (client: number) => Promise<unknown>;
}

interface Sample {
  readonly rate: number;
  readonly clientMicros: number;
  readonly serverMicros: number;
  readonly requests: number;
}

interface Servers {
  readonly address: string;
  readonly pids: readonly number[];
  /** How many requests the one that we are connected to has had. */
  readonly requests: () => Promise<number>;
  stop(): Promise<void>;
}

/** Processor time of a process so far, in µs. */
function serverMicros(pids: readonly number[]): number {
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, each) => sum + each, 0) * (1_000_000 / TICKS_A_SECOND);
}

async function sample({ clients, pair }: Layer, ms: number, { pids, requests }: Servers): Promise<Sample> {
  const received = await requests();
  const [server, client, from] = [serverMicros(pids), process.cpuUsage(), performance.now()];
  const pairs = await loop(ms, clients, async (each) => {
    await pair(each);
  });
  const rate = (pairs / (performance.now() - from)) * 1_000;
  const { user, system } = process.cpuUsage(client);
  const theirs = serverMicros(pids) - server;
  return {
    rate,
    clientMicros: (user + system) / pairs,
    serverMicros: theirs / pairs,
    requests: ((await requests()) - received) / pairs,
  };
}

async function requestsTo(server: ZooKeeperServer): Promise<number> {
  return Number(/^zk_packets_received\t(\d+)$/m.exec(await server.ask("mntr"))?.[1]);
}

async function start(size: number): Promise<Servers> {
  if (size === 1) {
    const server = await startZooKeeper({ tickTimeMs: 2_000 });
    const { address, pid } = server;
    return { address, pids: [pid], requests: () => requestsTo(server), stop: () => server.stop() };
  }
  const ensemble = await startEnsemble({ tickTimeMs: 2_000 }, size);
  await ensemble.leader();
  const [follower] = await ensemble.followers();
  if (follower === undefined) throw new Error("no server follows");
  const pids = ensemble.servers.map(({ pid }) => pid);
  return { address: follower.address, pids, requests: () => requestsTo(follower), stop: () => ensemble.stop() };
}

const servers = await start(Number(values.servers));
for (const pid of servers.pids) spawnSync("taskset", ["-a", "-c", "-p", "0", String(pid)]);
const zk = await ZooKeeper.connect(servers.address, { sessionTimeoutMs: 30_000 });
await zk.create("/layers");
await zk.create("/layers/bench");
const path = `/layers/bench/${OWNER}-x-lock-`;
const sequential = { mode: "ephemeral-sequential" } as const;

const engine = zookeeper({ servers: servers.address, sessionTimeoutMs: 30_000 });
await engine.open();
const client = { clientId: "x".repeat(22), host: "a-machine", pid: 12_345 };
const spec = {
  name: "engine",
  mode: "exclusive",
  limit: 1,
  ttlMs: 30_000,
  graceMs: 0,
  minHoldMs: 0,
  wait: true,
  steal: false,
  client,
  value: undefined,
} as const;
const settings = { servers: servers.address, sessionTimeoutMs: 30_000 };
const managers = await Promise.all(Array.from({ length: 10 }, () => connect(zookeeper(settings))));

const layers: Layer[] = [
  {
    name: "create + delete",
    clients: 1,
    async pair() {
      await zk.create("/raw", "", { mode: "ephemeral" });
      await zk.delete("/raw");
    },
  },
  {
    name: "… as deep, with a lock's data",
    clients: 1,
    async pair() {
      await zk.create(path, DATA, { mode: "ephemeral" });
      await zk.delete(path);
    },
  },
  {
    name: "… and sequential",
    clients: 1,
    async pair() {
      const { path: created } = await zk.create(path, DATA, sequential);
      await zk.delete(created);
    },
  },
  {
    name: "… and listed in the same write",
    clients: 1,
    async pair() {
      const creating = zk.create(path, DATA, sequential);
      const listing = zk.getChildren("/layers/bench");
      const { path: created } = await creating;
      await listing;
      await zk.delete(created);
    },
  },
  {
    name: "sequential, written to and deleted in one",
    clients: 1,
    async pair() {
      const { path: created } = await zk.create(path, DATA, sequential);
      await zk.multi([
        { kind: "setData", path: created, data: "" },
        { kind: "delete", path: created },
      ]);
    },
  },
  {
    name: "the engine",
    clients: 1,
    async pair() {
      const grant = await engine.request(spec);
      await grant?.release();
    },
  },
  {
    name: "the lock manager",
    clients: 1,
    async pair() {
      const lock = await managers[0]?.acquire("alone");
      await lock?.release();
    },
  },
  {
    name: "ten clients on one name",
    clients: 10,
    async pair(each) {
      const lock = await managers[each]?.acquire("crowd");
      await lock?.release();
    },
  },
];
const chosen = layers.filter(({ name }, index) => index === 0 || name.includes(values.only));
const samples = chosen.map((): Sample[] => []);
const ms = Number(values.ms);
try {
  for (const layer of chosen) await sample(layer, 2_500, servers);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (let turn = 0; turn < chosen.length; turn++) {
      const index = (turn + round) % chosen.length;
      const layer = chosen[index];
      if (layer !== undefined) samples[index]?.push(await sample(layer, ms, servers));
    }
  }
  const limits = (samples[0] ?? []).map(({ rate }) => rate);
  for (const [index, { name }] of chosen.entries()) {
    const own = samples[index] ?? [];
    const rate = median(own.map((each) => each.rate));
    // Against the limit of the same round: the machine may have had other work in some.
    const share = median(own.map((each, round) => each.rate / (limits[round] ?? 0)));
    const ours = median(own.map((each) => each.clientMicros));
    const theirs = median(own.map((each) => each.serverMicros));
    const requests = median(own.map((each) => each.requests));
    console.log(
      `${name.padEnd(44)} ${rate.toFixed(0).padStart(6)}/s  ${share.toFixed(2)}  ${(1e6 / rate).toFixed(0).padStart(5)} µs` +
        `  client ${ours.toFixed(0).padStart(4)}  servers ${theirs.toFixed(0).padStart(4)}  requests ${requests.toFixed(1)}`,
    );
  }
} finally {
  await Promise.all(managers.map((locks) => locks.close()));
  await engine.close();
  await zk.close();
  await servers.stop();
}
