/** Plays a program in a world: same program, same outcome. */
import type { Engine } from "../../src/engine/engine.ts";
import { connect, type LockManager } from "../../src/index.ts";
import type { HistoryEvent } from "../../src/testing/history/index.ts";
import type { Weather } from "../../src/testing/simulation/network.ts";
import { SimulatedProcess, World } from "../../src/testing/simulation/world.ts";
import { ELECTION, nameOf, SimulatedClient } from "./client.ts";
import { type Complaint, Observer } from "./observer.ts";
import { describeProgram, drawProgram, isFair, type Program, type Shape, type Step } from "./program.ts";
import { shrink } from "./shrink.ts";

/** The engine's side of a world. */
export interface Setting {
  /** A new engine for this process, not opened yet. */
  engineFor(process: SimulatedProcess): Engine;
  freeze(server: number, ms: number): void;
  restart(server: number): void;
  /** The system has closed the sockets of a dead process. */
  killed(process: SimulatedProcess): void;
  /** Called after every event; what it returns is against the rule. */
  look(): readonly string[];
}

export interface SettingKind {
  readonly name: string;
  readonly shape: Shape;
  /** `weather` may change while the world lives. */
  create(world: World, weather: Weather): Setting;
}

export interface Outcome {
  readonly program: Program;
  readonly complaints: readonly Complaint[];
  readonly grants: number;
  readonly events: number;
  readonly history: readonly HistoryEvent[];
  /** How many terms observers of the election have seen. */
  readonly sightings: number;
}

/** Clocks run up to so much too fast or too slow; the model allows 1 % between two of them. */
const DRIFT = 0.004;
const SLICE_MS = 250;
/** Once all is calm, everything has to come to its end within so many leases, and so much more. */
const PATIENCE_LEASES = 10;
const PATIENCE_MS = 3_000;

export function programOf(seed: number, { shape }: SettingKind): Program {
  return drawProgram(new World(seed), seed, shape);
}

export async function play(program: Program, kind: SettingKind): Promise<Outcome> {
  const stage = new Stage(program, kind);
  return await stage.play();
}

/** Fails with a program made as short as it gets, and a picture. */
export async function report(outcome: Outcome, kind: SettingKind): Promise<string> {
  const first = promiseOf(outcome);
  const failsAlike = async (program: Program): Promise<boolean> => promiseOf(await play(program, kind)) === first;
  const short = await shrink(outcome.program, failsAlike);
  const { complaints } = await play(short, kind);
  const pictures = complaints.map(({ text, drawing }) => drawing ?? text);
  const seed = `${kind.name}, seed ${outcome.program.seed}: ${outcome.complaints[0]?.text ?? "nothing"}`;
  return [
    seed,
    `the shortest program that fails like it (${short.steps.length} steps):`,
    describeProgram(short),
    ...pictures,
  ].join("\n\n");
}

/** "S1", "L5" … of the first complaint: a shorter program has to fail in the same way. */
function promiseOf({ complaints }: Outcome): string | undefined {
  return complaints[0]?.text.slice(0, 2);
}

class Stage {
  readonly #program: Program;
  readonly #kind: SettingKind;
  readonly #world: World;
  readonly #weather: Weather;
  readonly #setting: Setting;
  readonly #observer: Observer;
  readonly #clients: SimulatedClient[] = [];
  readonly #published = new Map<bigint, string>();
  readonly #sighted = new Map<bigint, string | null>();

  constructor(program: Program, kind: SettingKind) {
    this.#program = program;
    this.#kind = kind;
    this.#world = new World(program.seed);
    this.#weather = { ...program.weather };
    this.#setting = kind.create(this.#world, this.#weather);
    this.#observer = new Observer(this.#world);
  }

  async play(): Promise<Outcome> {
    const { shape } = this.#kind;
    for (let index = 0; index < shape.clients; index++) void this.#addClient(`client-${index}`);
    for (const step of this.#program.steps) this.#world.after(step.atMs, () => this.#perform(step));
    if (!isFair(this.#program.weather))
      this.#disturb("storm", "messages and bells are late or lost", shape.toMs + shape.settlesMs);
    await this.#live(shape.toMs);
    Object.assign(this.#weather, { lost: 0, doubled: 0, lostBells: 0, slow: 0 } satisfies Partial<Weather>);
    await this.#rest(PATIENCE_LEASES * shape.ttlMs + PATIENCE_MS);
    await this.#live(this.#world.nowMs + 1.2 * shape.ttlMs + SLICE_MS);
    await this.#lookForRemains();
    this.#compareLeaders();
    this.#observer.recorder("world").tell({ kind: "ended" });
    // A set that waits for its second name holds the first one unseen: then nobody can say from outside what was free.
    const judged = this.#program.steps.every((step) => step.do !== "set");
    const complaints = this.#observer.verdict(judged ? shape.passesOnMs : undefined);
    const { grants, events: history } = this.#observer;
    return {
      program: this.#program,
      complaints,
      grants,
      events: this.#world.events,
      history,
      sightings: this.#sighted.size,
    };
  }

  async #live(untilMs: number): Promise<void> {
    await this.#world.live(untilMs, () => {
      this.#observer.look();
      for (const text of this.#setting.look()) this.#observer.complain(text);
    });
  }

  /** Lives until nobody is busy any more, but not longer than `mostMs`. */
  async #rest(mostMs: number): Promise<void> {
    const untilMs = this.#world.nowMs + mostMs;
    while (this.#clients.some(({ busy }) => busy.length > 0) && this.#world.nowMs < untilMs) {
      await this.#live(this.#world.nowMs + SLICE_MS);
    }
    for (const { process, busy } of this.#clients) {
      if (busy.length > 0) this.#observer.complain(`L5: ${process.name} is still at ${busy.join(", ")}`);
    }
  }

  #addClient(name: string): Promise<LockManager> {
    const process = new SimulatedProcess(this.#world, name, this.#world.between(-DRIFT, DRIFT));
    const locks = new Promise<LockManager>((resolve) => {
      const open = (): void => {
        connect(this.#setting.engineFor(process)).then(resolve, () => process.after(SLICE_MS, open));
      };
      this.#world.after(0, () => process.deliver(open));
    });
    const { shape } = this.#kind;
    const [observer, published, sighted] = [this.#observer, this.#published, this.#sighted];
    this.#clients.push(new SimulatedClient({ process, observer, locks, ttlMs: shape.ttlMs, published, sighted }));
    return locks;
  }

  #perform(step: Step): void {
    if (step.do === "freeze") {
      this.#setting.freeze(step.server, step.ms);
      this.#disturb(
        `freeze ${step.server} ${step.atMs}`,
        `server ${step.server} is frozen`,
        this.#world.nowMs + step.ms,
      );
      return;
    }
    if (step.do === "restart") {
      this.#setting.restart(step.server);
      this.#disturb(
        `restart ${step.atMs}`,
        `server ${step.server} is restarted`,
        this.#world.nowMs + 2 * this.#kind.shape.ttlMs,
      );
      return;
    }
    const client = this.#clients[step.client];
    if (client === undefined || client.process.dead) return;
    if (step.do === "kill") {
      this.#observer.recorder("world").tell({ kind: "killed", victim: client.process.name });
      client.process.kill();
      this.#setting.killed(client.process);
    } else if (step.do === "pause") this.#pause(client.process, step.ms);
    else client.start(step);
  }

  #pause(process: SimulatedProcess, ms: number): void {
    const recorder = this.#observer.recorder("world");
    if (!process.paused) recorder.tell({ kind: "stopped", victim: process.name });
    process.pause(ms);
    this.#world.after(ms, () => {
      if (!process.paused) recorder.tell({ kind: "resumed", victim: process.name });
    });
  }

  #disturb(fault: string, what: string, untilMs: number): void {
    const recorder = this.#observer.recorder("world");
    recorder.tell({ kind: "disturbed", fault, what, breaksExclusion: false });
    this.#world.after(untilMs - this.#world.nowMs, () => recorder.tell({ kind: "calmed", fault }));
  }

  /** Somebody new finds every name free, and nothing in its queue. */
  async #lookForRemains(): Promise<void> {
    const { names, ttlMs } = this.#kind.shape;
    let ended = Infinity;
    const look = async (locks: LockManager): Promise<void> => {
      for (const name of [ELECTION, ...Array.from({ length: names }, (_, index) => nameOf(index))]) {
        const { held, pending } = await locks.query({ prefix: name });
        if (held.length + pending.length > 0)
          this.#observer.complain(
            `L3: ${held.length} held and ${pending.length} pending requests stay behind in ${name}`,
          );
        const lock = await locks.tryAcquire(name, { ttlMs });
        if (lock === null) this.#observer.complain(`L1: ${name} was not free in the end`);
        await lock?.release();
      }
    };
    this.#addClient("last")
      .then(look)
      .catch((error: unknown) => this.#observer.complain(`the last look failed: ${String(error)}`))
      .finally(() => (ended = this.#world.nowMs));
    const untilMs = this.#world.nowMs + PATIENCE_LEASES * ttlMs + PATIENCE_MS;
    while (this.#world.nowMs < Math.min(ended, untilMs)) await this.#live(this.#world.nowMs + SLICE_MS);
    if (ended === Infinity) this.#observer.complain("L5: the last look never ended");
  }

  /** What observers of the election saw is what leaders have published. */
  #compareLeaders(): void {
    for (const [token, value] of this.#sighted) {
      const published = this.#published.get(token);
      if (published !== undefined && published !== value)
        this.#observer.complain(`term ${token} published ${published}, observers saw ${String(value)}`);
    }
  }
}
