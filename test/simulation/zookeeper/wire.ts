/** In the place of a TCP connection to the simulated server: bytes keep their order; a lost one is the last that arrives. */
import type { Weather } from "../../../src/testing/simulation/network.ts";
import type { SimulatedProcess } from "../../../src/testing/simulation/world.ts";
import { FrameReader } from "../../../src/zookeeper/frames.ts";
import type { Wire } from "../../../src/zookeeper/index.ts";
import { ServerConnection, type SimulatedZooKeeper } from "./server.ts";

const FAST_MS = 5;
const LARGEST_PACKET = 1_048_576;

export class SimulatedWire implements Wire {
  readonly #client: SimulatedProcess;
  readonly #server: SimulatedZooKeeper;
  readonly #weather: Weather;
  readonly #frames = new FrameReader(LARGEST_PACKET);
  #connection: ServerConnection | undefined;
  #onData: (chunk: Buffer) => void = () => {};
  #onClose: () => void = () => {};
  #state: "open" | "stuck" | "closed" = "open";
  /** Nothing overtakes: when the last bytes in each direction arrive. */
  #thereMs = 0;
  #backMs = 0;

  constructor(client: SimulatedProcess, server: SimulatedZooKeeper, weather: Weather, onOpen: () => void) {
    this.#client = client;
    this.#server = server;
    this.#weather = weather;
    this.#there(() => {
      const peer = {
        send: (bytes: Buffer) => this.#back(() => this.#onData(bytes)),
        hangUp: () => this.#back(() => this.#closed()),
      };
      this.#connection = new ServerConnection(server, peer);
      this.#back(onOpen);
    });
  }

  on(
    event: "data" | "error" | "close",
    listener: ((chunk: Buffer) => void) & ((error: Error) => void) & (() => void),
  ): void {
    if (event === "data") this.#onData = listener;
    else if (event === "close") this.#onClose = listener;
  }

  write(bytes: Buffer): void {
    const sent = Buffer.from(bytes); // the caller may use its memory again
    this.#there(() => {
      for (const body of this.#frames.frames(sent)) this.#connection?.receive(body);
    });
  }

  cork(): void {}
  uncork(): void {}

  destroy(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.hangUp();
  }

  /** The server hears of the end. */
  hangUp(): void {
    this.#client.world.after(this.#latencyMs(), () => this.#server.process.deliver(() => this.#connection?.forget()));
  }

  #closed(): void {
    this.#state = "closed";
    this.#onClose();
  }

  #there(work: () => void): void {
    if (this.#isStuck()) return;
    const { world } = this.#client;
    this.#thereMs = Math.max(this.#thereMs, world.nowMs + this.#latencyMs());
    world.after(this.#thereMs - world.nowMs, () => this.#server.process.deliver(work));
  }

  #back(work: () => void): void {
    if (this.#isStuck()) return;
    const { world } = this.#client;
    this.#backMs = Math.max(this.#backMs, world.nowMs + this.#latencyMs());
    world.after(this.#backMs - world.nowMs, () =>
      this.#client.deliver(() => {
        if (this.#state !== "closed") work();
      }),
    );
  }

  #isStuck(): boolean {
    if (this.#state === "open" && this.#client.world.chance(this.#weather.lost)) this.#state = "stuck";
    return this.#state !== "open";
  }

  #latencyMs(): number {
    const { slow, slowMs } = this.#weather;
    const { world } = this.#client;
    return world.between(0.1, world.chance(slow) ? slowMs : FAST_MS);
  }
}
