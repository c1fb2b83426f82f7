/** A private ensemble of ZooKeeper servers on 127.0.0.1. */
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./server-process.ts";
import { startZooKeeper, type ZooKeeperServer, type ZooKeeperServerOptions } from "./zookeeper.ts";

export interface ZooKeeperEnsemble {
  readonly servers: readonly ZooKeeperServer[];
  /** `host:port,host:port,host:port`, for a client. */
  readonly addresses: string;
  /** Waits until some running server is the leader, 30 s at most. */
  leader(): Promise<ZooKeeperServer>;
  /** Those that follow it now. */
  followers(): Promise<ZooKeeperServer[]>;
  stop(): Promise<void>;
}

/** Serving after about 1.5 s. */
export async function startEnsemble(options: ZooKeeperServerOptions = {}, size = 3): Promise<ZooKeeperEnsemble> {
  const ids = Array.from({ length: size }, (_, index) => index + 1);
  const lines: string[] = [];
  for (const id of ids) lines.push(`server.${id}=127.0.0.1:${await freePort()}:${await freePort()}`);
  const starts = await Promise.allSettled(ids.map((id) => startZooKeeper(options, { id, lines })));
  const servers = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const failed = starts.find((start) => start.status === "rejected");
  if (failed !== undefined) {
    await Promise.all(servers.map((server) => server.stop()));
    throw failed.reason;
  }
  return new PrivateEnsemble(servers);
}

export class PrivateEnsemble implements ZooKeeperEnsemble {
  readonly servers: readonly ZooKeeperServer[];

  constructor(servers: readonly ZooKeeperServer[]) {
    this.servers = servers;
  }

  get addresses(): string {
    return this.servers.map((server) => server.address).join(",");
  }

  async leader(): Promise<ZooKeeperServer> {
    for (let attempt = 0; attempt < 600; attempt++) {
      const [leader] = await this.#inMode("leader");
      if (leader !== undefined) return leader;
      await sleep(50);
    }
    throw new Error("no leader after 30 s");
  }

  followers(): Promise<ZooKeeperServer[]> {
    return this.#inMode("follower");
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  async #inMode(mode: string): Promise<ZooKeeperServer[]> {
    const modes = await Promise.all(
      this.servers.map((server) => (server.running ? server.mode() : Promise.resolve(undefined))),
    );
    return this.servers.filter((_, index) => modes[index] === mode);
  }
}
