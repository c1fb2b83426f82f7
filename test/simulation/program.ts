/**
 * What happens in a simulated world, as data: who asks for what and when, who is stopped or killed. A program can be drawn
 * from a seed, made smaller step by step, and read by a person.
 */
import type { Weather } from "../../src/testing/simulation/network.ts";
import type { World } from "../../src/testing/simulation/world.ts";

/** A number is a semaphore's permits. */
export type Kind = "mutex" | "read" | "write" | number;

export type Step = { readonly atMs: number } & (
  | {
      readonly do: "lock";
      readonly client: number;
      readonly kind: Kind;
      readonly name: number;
      readonly holdMs: number;
      /** Null: for ever. 0: `tryAcquire`. */
      readonly waitMs: number | null;
    }
  | {
      readonly do: "set";
      readonly client: number;
      readonly names: readonly number[];
      readonly shared: boolean;
      readonly holdMs: number;
      readonly waitMs: number | null;
    }
  /** Stands for election for `forMs`; resigns each term after `termMs`. */
  | { readonly do: "lead"; readonly client: number; readonly termMs: number; readonly forMs: number }
  /** Looks who leads, for `forMs`. */
  | { readonly do: "observe"; readonly client: number; readonly forMs: number }
  | { readonly do: "pause"; readonly client: number; readonly ms: number }
  | { readonly do: "kill"; readonly client: number }
  | { readonly do: "freeze"; readonly server: number; readonly ms: number }
  /** What it means is the world's affair: with or without its data. */
  | { readonly do: "restart"; readonly server: number }
);

export interface Program {
  /** Decides everything that the program leaves open: latencies, losses, clocks. */
  readonly seed: number;
  readonly weather: Weather;
  readonly steps: readonly Step[];
}

/** What a world can do, and how big programs for it are. */
export interface Shape {
  readonly clients: number;
  readonly names: number;
  readonly servers: number;
  readonly ttlMs: number;
  /** Locks are held for up to so long; one in ten for up to three leases. */
  readonly holdMs: number;
  /** Steps begin in this span. */
  readonly fromMs: number;
  readonly toMs: number;
  /** How long after a bad network has become a good one the engine may still suffer from it. */
  readonly settlesMs: number;
  /** How long, in calm, a free place may wait for the next one. */
  readonly passesOnMs: number;
  readonly shared: boolean;
  readonly restarts: boolean;
}

const FAIR_WEATHER: Weather = { lost: 0, doubled: 0, lostBells: 0, slow: 0, slowMs: 0 };

/** A third of all programs run in fair weather. */
export function drawWeather(world: World): Weather {
  if (world.chance(1 / 3)) return FAIR_WEATHER;
  return {
    lost: world.between(0, 0.05),
    doubled: world.between(0, 0.03),
    lostBells: world.chance(0.3) ? 1 : world.between(0, 0.2),
    slow: world.between(0, 0.1),
    slowMs: 150,
  };
}

export function isFair({ lost, doubled, lostBells, slow }: Weather): boolean {
  return lost === 0 && doubled === 0 && lostBells === 0 && slow === 0;
}

/** About `size` steps of work, and faults among them. */
export function drawProgram(world: World, seed: number, shape: Shape, size = 60): Program {
  const weather = drawWeather(world);
  // Without sets it is also judged how soon a free place passes on.
  const sets = world.chance(0.5);
  const steps = Array.from({ length: size }, () => drawStep(world, shape)).filter((step) => sets || step.do !== "set");
  return { seed, weather, steps: steps.sort((left, right) => left.atMs - right.atMs) };
}

function drawStep(world: World, shape: Shape): Step {
  const below = (most: number): number => Math.floor(world.random() * most);
  const { ttlMs } = shape;
  const atMs = Math.round(world.between(shape.fromMs, shape.toMs));
  const client = below(shape.clients);
  const ms = (most: number): number => Math.ceil(world.random() * most);
  const holdMs = ms(world.chance(0.1) ? 3 * ttlMs : shape.holdMs);
  const waitMs = world.chance(0.3) ? null : world.chance(0.2) ? 0 : ms(2 * ttlMs);
  const dice = world.random();
  if (dice < 0.6) {
    const kinds: Kind[] = shape.shared ? ["mutex", "read", "write", 1 + below(4)] : ["mutex"];
    return {
      atMs,
      do: "lock",
      client,
      kind: kinds[below(kinds.length)] ?? "mutex",
      name: below(shape.names),
      holdMs,
      waitMs,
    };
  }
  if (dice < 0.7) {
    const names = Array.from({ length: 1 + below(3) }, () => below(shape.names));
    return { atMs, do: "set", client, names, shared: shape.shared && world.chance(0.3), holdMs, waitMs };
  }
  if (dice < 0.78) return { atMs, do: "lead", client, termMs: holdMs, forMs: ms(1_500) };
  if (dice < 0.8) return { atMs, do: "observe", client, forMs: ms(1_500) };
  if (dice < 0.93) return { atMs, do: "pause", client, ms: ms(2.5 * ttlMs) };
  if (dice < 0.95) return { atMs, do: "kill", client };
  const server = below(shape.servers);
  if (shape.restarts && dice < 0.97) return { atMs, do: "restart", server };
  return { atMs, do: "freeze", server, ms: ms(1.5 * ttlMs) };
}

/** The program for a person, one line per step. */
export function describeProgram({ seed, weather, steps }: Program): string {
  const sky = isFair(weather) ? "fair weather" : `weather ${JSON.stringify(weather)}`;
  return [
    `seed ${seed}, ${sky}`,
    ...steps.map((step) => `${String(step.atMs).padStart(6)} ms  ${describeStep(step)}`),
  ].join("\n");
}

function describeStep(step: Step): string {
  if ("server" in step) {
    return `server ${step.server} ${step.do === "freeze" ? `is frozen for ${step.ms} ms` : "is restarted"}`;
  }
  return `client-${step.client} ${describeDeed(step)}`;
}

function describeDeed(step: Exclude<Step, { readonly server: number }>): string {
  switch (step.do) {
    case "lock": {
      const { kind, name, holdMs } = step;
      const what = typeof kind === "number" ? `one of ${kind} permits` : kind;
      return `asks for name-${name} (${what})${patience(step.waitMs)}, holds it for ${holdMs} ms`;
    }
    case "set":
      return `asks for names ${step.names.join(", ")} (${step.shared ? "shared" : "exclusive"})${patience(step.waitMs)}, holds them for ${step.holdMs} ms`;
    case "lead":
      return `stands for election for ${step.forMs} ms, resigns after ${step.termMs} ms`;
    case "observe":
      return `looks who leads, for ${step.forMs} ms`;
    case "pause":
      return `is stopped for ${step.ms} ms`;
    case "kill":
      return "is killed";
    default:
      return step satisfies never;
  }
}

function patience(waitMs: number | null): string {
  if (waitMs === null) return "";
  return waitMs === 0 ? " if it is free" : `, waits at most ${waitMs} ms`;
}
