/** What can go wrong on the way to servers: through the proxies in front of them. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy, Faults } from "../../../servers/fault-proxy.ts";
import type { FaultKind } from "./deployment.ts";

const NOTHING: Faults = { toServer: "pass", toClient: "pass", delayMs: 0, refuse: false };

/** Each happens to one of `proxies`. */
export function networkFaults(proxies: readonly FaultProxy[]): FaultKind[] {
  const during = (
    name: string,
    faults: (delayMs: number) => Faults,
    resetsBefore = false,
    resetsAfter = false,
  ): FaultKind => ({
    name,
    async run(forMs, dice) {
      const proxy = dice.pick(proxies);
      proxy.set(faults(Math.round(dice.between(2, 60))));
      if (resetsBefore) proxy.reset();
      await sleep(forMs);
      proxy.set(NOTHING);
      // A connection that has lost a reply would take the next one for it.
      if (resetsAfter) proxy.reset();
    },
  });
  return [
    { name: "connections reset", run: async (_, dice) => dice.pick(proxies).reset() },
    during("connections reset and refused", () => ({ refuse: true }), true),
    during("networks cut off", () => ({ toServer: "stall", toClient: "stall" })),
    during("replies lost", () => ({ toClient: "drop" }), false, true),
    during("networks slow", (delayMs) => ({ delayMs })),
  ];
}
