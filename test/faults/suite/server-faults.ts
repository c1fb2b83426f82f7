/** What can go wrong with a server process. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultKind } from "./deployment.ts";
import type { Dice } from "./dice.ts";

export interface FallibleServer {
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** `choose` says which server it happens to. */
export function frozen(name: string, choose: (dice: Dice) => Promise<FallibleServer> | FallibleServer): FaultKind {
  return {
    name,
    async run(forMs, dice) {
      const server = await choose(dice);
      server.freeze();
      await sleep(forMs);
      server.thaw();
    },
  };
}

export function restarted(name: string, choose: (dice: Dice) => Promise<FallibleServer> | FallibleServer): FaultKind {
  return {
    name,
    async run(forMs, dice) {
      const server = await choose(dice);
      await server.kill();
      await sleep(forMs / 2);
      await server.restart();
    },
  };
}

/** A wall clock that is set, forward or back, and set right again some time later. */
export function clockJumps(
  name: string,
  mostMs: number,
  choose: (dice: Dice) => { setClockOffset(offsetMs: number): Promise<void> },
): FaultKind {
  return {
    name,
    breaksExclusion: true,
    async run(forMs, dice) {
      const server = choose(dice);
      await server.setClockOffset(dice.chance(0.7) ? dice.between(300, mostMs) : -dice.between(300, mostMs));
      await sleep(forMs);
      await server.setClockOffset(0);
    },
  };
}

/** Waits until `check` says true. */
export async function until(what: string, check: () => Promise<boolean>, withinMs = 30_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await check().catch(() => false))) {
    if (performance.now() > endMs) throw new Error(`${what}: not so after ${withinMs} ms`);
    await sleep(25);
  }
}
