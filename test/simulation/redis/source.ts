/**
 * The way to simulated Redis servers, in the place of a client library: connections keep their order as TCP does; a lost
 * message is a connection on which nothing moves any more.
 */
import type { Command, Connection, Source } from "../../../src/redis/connection.ts";
import type { Weather } from "../../../src/testing/simulation/network.ts";
import type { SimulatedProcess } from "../../../src/testing/simulation/world.ts";
import type { Listener, SimulatedRedis } from "./server.ts";

const FAST_MS = 5;

export class SimulatedConnection implements Connection {
  readonly #client: SimulatedProcess;
  readonly #server: SimulatedRedis;
  readonly #weather: Weather;
  readonly #pending = new Set<(error: Error) => void>();
  readonly #forget: () => void;
  #listener: Listener | undefined;
  #onEnd: ((error: Error) => void) | undefined;
  #state: "open" | "stuck" | "closed" = "open";
  /** Nothing overtakes: when the last message in each direction arrives. */
  #thereMs = 0;
  #backMs = 0;

  constructor(client: SimulatedProcess, server: SimulatedRedis, weather: Weather) {
    this.#client = client;
    this.#server = server;
    this.#weather = weather;
    this.#forget = server.whenRestarted(() => this.#broken());
  }

  async ready(): Promise<void> {
    await this.send(["ping"]);
  }

  send(command: Command): Promise<unknown> {
    return this.#ask(() => this.#server.command(command));
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    await this.#ask(() => {
      this.#listener = { channel, ring: (message) => this.#ring(() => onMessage(message)) };
      this.#server.listen(this.#listener);
    });
  }

  keepAlive(): void {}

  onEnd(listener: (error: Error) => void): void {
    this.#onEnd = listener;
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#end(new Error("Connection is closed."));
    this.hangUp();
  }

  /** The server hears of the end of the connection, a little later. */
  hangUp(): void {
    this.#forget();
    this.#client.world.after(this.#latencyMs(), () =>
      this.#server.process.deliver(() => {
        if (this.#listener !== undefined) this.#server.unlisten(this.#listener);
      }),
    );
  }

  /** The server was restarted. */
  #broken(): void {
    this.#client.world.after(this.#latencyMs(), () =>
      this.#client.deliver(() => {
        if (this.#state === "closed") return;
        this.#state = "closed";
        const error = new Error("Connection is closed.");
        this.#end(error);
        this.#onEnd?.(error);
      }),
    );
  }

  #end(error: Error): void {
    for (const reject of this.#pending) reject(error);
    this.#pending.clear();
  }

  #ask<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#state === "closed") {
        reject(new Error("Connection is closed."));
        return;
      }
      this.#pending.add(reject);
      const answered = (answer: () => void): void => {
        if (this.#pending.delete(reject)) answer();
      };
      this.#there(() => {
        let answer: () => void;
        try {
          const value = work();
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        this.#back(() => answered(answer));
      });
    });
  }

  #there(work: () => void): void {
    const { world } = this.#client;
    if (this.#isStuck()) return;
    this.#thereMs = Math.max(this.#thereMs, world.nowMs + this.#latencyMs());
    const run = this.#server;
    let restarted = false;
    const forget = run.whenRestarted(() => (restarted = true));
    world.after(this.#thereMs - world.nowMs, () =>
      run.process.deliver(() => {
        forget();
        if (!restarted) work();
      }),
    );
  }

  #back(work: () => void): void {
    const { world } = this.#client;
    if (this.#isStuck()) return;
    this.#backMs = Math.max(this.#backMs, world.nowMs + this.#latencyMs());
    world.after(this.#backMs - world.nowMs, () => this.#client.deliver(work));
  }

  /** Pub/sub: a bell may be lost by itself, as it may where a failover or a full buffer loses it. */
  #ring(work: () => void): void {
    if (this.#client.world.chance(this.#weather.lostBells)) return;
    this.#back(() => {
      if (this.#state !== "closed") work();
    });
  }

  /** A message that is lost for good means that this connection never moves again, until somebody gives it up. */
  #isStuck(): boolean {
    if (this.#state === "open" && this.#client.world.chance(this.#weather.lost)) this.#state = "stuck";
    return this.#state === "stuck";
  }

  #latencyMs(): number {
    const { slow, slowMs } = this.#weather;
    const { world } = this.#client;
    return world.between(0.1, world.chance(slow) ? slowMs : FAST_MS);
  }
}

/** All connections of one process, so that its death is noticed. */
export class SimulatedSockets {
  readonly #client: SimulatedProcess;
  readonly #weather: Weather;
  readonly #open: SimulatedConnection[] = [];

  constructor(client: SimulatedProcess, weather: Weather) {
    this.#client = client;
    this.#weather = weather;
  }

  source(server: SimulatedRedis): Source {
    const open = (): Connection => {
      const connection = new SimulatedConnection(this.#client, server, this.#weather);
      this.#open.push(connection);
      return connection;
    };
    return {
      library: "ioredis",
      cluster: false,
      keyPrefix: "",
      written: (key) => key,
      open,
      openSubscriber: open,
      openDedicated: open,
      masterOf: () => "",
      masters: () => [],
      close: async () => {},
    };
  }

  hangUp(): void {
    for (const connection of this.#open) connection.hangUp();
  }
}
