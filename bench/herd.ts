/**
 * `node bench/herd.ts [--most 500] [--svg FILE]`: how many clients a hand-off wakes in ZooKeeper, by the recipe. N clients, each with a
 * session of its own, wait for one lock; each hand-off is measured when all is quiet. Counted on the wire, between server and clients.
 * Prints a table and writes the chart of docs/engines/zookeeper.md.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Filter, startFaultProxy } from "../servers/fault-proxy.ts";
import { startZooKeeper } from "../servers/zookeeper.ts";
import { zookeeper } from "../src/engines/zookeeper/index.ts";
import { connect, type HeldLock, type LockManager } from "../src/index.ts";
import { herdChart, type HerdPoint } from "./herd-chart.ts";
import { median } from "./harness.ts";

const WAITERS = [2, 10, 50, 100, 500];
const HAND_OFFS = 7;
const QUIET_MS = 300;
const NOTIFICATION_XID = -1;
const PING_XID = -2;

/** What one client was sent. */
interface Traffic {
  events: number;
  replies: number;
}

class Wire {
  readonly clients: Traffic[] = [];
  #lastAt = performance.now();

  /** A new connection: reads the packets on their way to the client and lets them pass. */
  newFilter(): Filter {
    const traffic = { events: 0, replies: 0 };
    this.clients.push(traffic);
    let kept = Buffer.alloc(0);
    let first = true; // the answer to the connect request has no header
    return (bytes) => {
      kept = Buffer.concat([kept, bytes]);
      while (kept.length >= 4 && kept.length >= 4 + kept.readInt32BE(0)) {
        const xid = kept.readInt32BE(4);
        kept = kept.subarray(4 + kept.readInt32BE(0));
        if (!first && xid !== PING_XID) {
          this.#lastAt = performance.now();
          if (xid === NOTIFICATION_XID) traffic.events++;
          else traffic.replies++;
        }
        first = false;
      }
      return bytes;
    };
  }

  reset(): void {
    for (const client of this.clients) client.events = client.replies = 0;
  }

  async quiet(): Promise<void> {
    do await sleep(QUIET_MS / 10);
    while (performance.now() - this.#lastAt < QUIET_MS);
  }
}

/** Clients that all want one lock, over and over. */
class Crowd {
  readonly managers: LockManager[] = [];
  readonly #granted: { client: number; lock: HeldLock }[] = [];

  ask(client: number): void {
    void this.managers[client]?.acquire("herd").then((lock) => this.#granted.push({ client, lock }));
  }

  async next(): Promise<{ client: number; lock: HeldLock }> {
    for (;;) {
      const granted = this.#granted.shift();
      if (granted !== undefined) return granted;
      await sleep(5);
    }
  }
}

async function measureHerd(port: number, fair: boolean, waiters: number): Promise<HerdPoint> {
  const wire = new Wire();
  const crowd = new Crowd();
  const proxy = await startFaultProxy(port, "127.0.0.1", undefined, () => wire.newFilter());
  try {
    const engine = { servers: proxy.address, root: `/${fair ? "fair" : "race"}-${waiters}`, fair, leaderLagMs: 0 };
    for (let client = 0; client <= waiters; client++) {
      // One after another: the n-th connection is the n-th client's.
      crowd.managers.push(await connect(zookeeper({ ...engine, sessionTimeoutMs: 60_000 })));
      crowd.ask(client);
    }
    const woken: number[] = [];
    const replies: number[] = [];
    for (let handOff = 0; handOff < HAND_OFFS; handOff++) {
      const { client, lock } = await crowd.next();
      await wire.quiet();
      wire.reset();
      await lock.release();
      await wire.quiet();
      // What the releaser hears of its own node wakes nobody.
      woken.push(wire.clients.reduce((sum, { events }, index) => sum + (index === client ? 0 : events), 0));
      replies.push(wire.clients.reduce((sum, traffic) => sum + traffic.replies, 0));
      crowd.ask(client);
    }
    if (wire.clients.length !== waiters + 1) throw new Error("a client has connected again: the counts are void");
    return { recipe: fair ? "queue" : "race", waiters, events: median(woken), requests: median(replies) };
  } finally {
    await Promise.all(crowd.managers.map((manager) => manager.close().catch(() => {})));
    await proxy.close();
  }
}

const { values } = parseArgs({
  options: {
    most: { type: "string", default: "500" },
    svg: { type: "string", default: join(import.meta.dirname, "../docs/engines/zookeeper-herd.svg") },
  },
});
// A waiter that closes rejects its request; nobody listens to the rest of the crowd then.
process.on("unhandledRejection", () => {});

const server = await startZooKeeper();
try {
  const points: HerdPoint[] = [];
  console.log("| waiters | recipe 1: events | requests | recipe 2: events | requests |");
  console.log("| ------: | ---------------: | -------: | ---------------: | -------: |");
  for (const waiters of WAITERS.filter((count) => count <= Number(values.most))) {
    const race = await measureHerd(server.port, false, waiters);
    const queue = await measureHerd(server.port, true, waiters);
    points.push(race, queue);
    console.log(`| ${waiters} | ${race.events} | ${race.requests} | ${queue.events} | ${queue.requests} |`);
  }
  writeFileSync(values.svg, herdChart(points));
} finally {
  await server.stop();
}
