/** The article's two ways with ZooKeeper, each with the mistake that its words invite. */
import { ZooKeeper, ZooKeeperError } from "../../../src/zookeeper/index.ts";
import type { Doors, PlantedLock } from "./lock.ts";

const SESSION_MS = 1_000;

abstract class ZooKeeperLock implements PlantedLock {
  protected readonly client: ZooKeeper;
  protected readonly owner: string;

  constructor(client: ZooKeeper, owner: string) {
    this.client = client;
    this.owner = owner;
  }

  abstract acquire(): Promise<undefined>;
  abstract release(): Promise<void>;

  die(): void {
    void this.client.close(); // the session's end, without waiting for its time-out
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

/**
 * Way one: everybody races to create one node; who fails watches it, and all wake. "Getting the event and setting the next
 * watch take time": what happens in between is missed when nobody looks again.
 */
export class Herd extends ZooKeeperLock {
  readonly #doors: Doors;

  private constructor(client: ZooKeeper, owner: string, doors: Doors) {
    super(client, owner);
    this.#doors = doors;
  }

  static async connect(address: string, owner: string, doors: Doors): Promise<Herd> {
    return new Herd(await ZooKeeper.connect(address, { sessionTimeoutMs: SESSION_MS }), owner, doors);
  }

  async acquire(): Promise<undefined> {
    while (!(await this.#create())) {
      await this.#doors.pass(`${this.owner} was too late`);
      await new Promise<void>((resolve, reject) => {
        // The answer would say that the node is gone already.
        this.client.exists("/herd", { watch: ({ type }) => type === "deleted" && resolve() }).catch(reject);
      });
      await this.#doors.pass(`${this.owner} is awake`);
    }
  }

  async release(): Promise<void> {
    await this.client.delete("/herd");
  }

  async #create(): Promise<boolean> {
    try {
      await this.client.create("/herd", this.owner, { mode: "ephemeral" });
      return true;
    } catch (error) {
      if (error instanceof ZooKeeperError && error.code === "NODE_EXISTS") return false;
      throw error;
    }
  }
}

/**
 * Way two: a queue of sequential nodes, each watching the one in front. "As soon as the node in front vanishes (which proves
 * that its work is done), it is our turn": it may have been a waiter that died.
 */
export class TrustsItsPredecessor extends ZooKeeperLock {
  #path = "";

  static async connect(address: string, owner: string): Promise<TrustsItsPredecessor> {
    const client = await ZooKeeper.connect(address, { sessionTimeoutMs: SESSION_MS });
    await client.create("/queue").catch(() => {});
    return new TrustsItsPredecessor(client, owner);
  }

  async acquire(): Promise<undefined> {
    this.#path = (await this.client.create("/queue/n-", this.owner, { mode: "ephemeral-sequential" })).path;
    const { children } = await this.client.getChildren("/queue");
    const before = children.sort()[children.indexOf(this.#path.slice("/queue/".length)) - 1];
    if (before === undefined) return;
    await new Promise<void>((resolve, reject) => {
      const watching = this.client.exists(`/queue/${before}`, { watch: ({ type }) => type === "deleted" && resolve() });
      watching.then((stat) => stat === null && resolve(), reject);
    });
  }

  async release(): Promise<void> {
    await this.client.delete(this.#path);
  }
}
