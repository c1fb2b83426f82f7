/** The memory engine: clients are stand-ins in one process, faults are made between the locks and the store. */
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../../src/engine/clock.ts";
import { LeaseEngine } from "../../../../src/engine/lease-engine.ts";
import { MemorySpace } from "../../../../src/engines/memory/space.ts";
import { MemoryStore } from "../../../../src/engines/memory/store.ts";
import { Faults, FaultyStore } from "../../../../src/testing/faulty-store.ts";
import type { Deployment, FaultKind } from "../deployment.ts";

export async function memoryDeployment(): Promise<Deployment> {
  const space = new MemorySpace();
  const faults = new Faults();
  const during = (name: string, begin: () => void, end: () => void): FaultKind => ({
    name,
    async run(forMs) {
      begin();
      await sleep(forMs);
      end();
    },
  });
  return {
    engine: "memory",
    what: "one process, clients in it",
    traits: new MemoryStore(space, systemClock).traits,
    open: (clock) => new LeaseEngine(new FaultyStore(new MemoryStore(space, clock), faults, clock), clock),
    ttlMs: 1_000,
    roundingMs: 0,
    faults: [
      during(
        "engines frozen",
        () => faults.freeze(),
        () => faults.thaw(),
      ),
      { name: "connections reset", run: async () => faults.cut() },
      during(
        "replies lost",
        () => (faults.repliesLost = true),
        () => (faults.repliesLost = false),
      ),
      during(
        "bells lost",
        () => (faults.bellsDropped = true),
        () => (faults.bellsDropped = false),
      ),
    ],
    serving: async () => {},
    leftovers: async () => [],
    remains: async () => [],
    stop: async () => {},
  };
}
