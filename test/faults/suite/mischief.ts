/** Draws faults from the dice and lets them happen: one at a time to the servers, and beside it one at a time to a client. */
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryRecorder } from "../../../src/testing/history/index.ts";
import type { Client } from "./client.ts";
import type { Crowd } from "./crowd.ts";
import type { Deployment, FaultKind } from "./deployment.ts";
import { Dice } from "./dice.ts";

/** Between two faults, at pace 1. */
const SERVER_REST_MS = [500, 4_000] as const;
const CLIENT_REST_MS = [400, 3_000] as const;

interface ClientFault {
  readonly name: string;
  run(client: Client, forMs: number): Promise<void>;
}

export class Mischief {
  readonly counts: Record<string, number> = {};
  readonly #deployment: Deployment;
  readonly #crowd: Crowd;
  readonly #judge: HistoryRecorder;
  /** One for each: what happens to clients does not depend on how long a server took. */
  readonly #serverDice: Dice;
  readonly #clientDice: Dice;
  readonly #now = new Set<string>();
  readonly #open = new Set<string>();
  readonly #pace: number;
  #last = 0;

  constructor(deployment: Deployment, crowd: Crowd, judge: HistoryRecorder, seed: number, pace: number) {
    this.#deployment = deployment;
    this.#crowd = crowd;
    this.#judge = judge;
    this.#pace = pace;
    this.#serverDice = new Dice(2 * seed);
    this.#clientDice = new Dice(2 * seed + 1);
  }

  /** What happens at this moment, in words. */
  get now(): string {
    return [...this.#now].join(", ") || "nothing";
  }

  /** Lets faults happen until then, and resolves when the last one has been undone. */
  async until(endMs: number): Promise<void> {
    await Promise.all([this.#disturbServers(endMs), this.#disturbClients(endMs)]);
  }

  /** The servers serve again: from now on everybody has to be served in time. */
  calmed(): void {
    for (const fault of this.#open) this.#judge.tell({ kind: "calmed", fault });
    this.#open.clear();
  }

  async #disturbServers(endMs: number): Promise<void> {
    const dice = this.#serverDice;
    const { faults, ttlMs } = this.#deployment;
    while (await this.#rested(dice, SERVER_REST_MS, endMs)) {
      const kind = dice.pick(faults.filter(({ possible }) => possible?.() ?? true));
      // Mostly within a lease, now and then past it.
      const forMs = dice.chance(0.75) ? dice.between(50, 0.7 * ttlMs) : dice.between(ttlMs, 2 * ttlMs);
      await this.#during(kind, () => kind.run(forMs, dice));
    }
  }

  async #during(kind: FaultKind, happen: () => Promise<void>): Promise<void> {
    const fault = `fault ${++this.#last}`;
    const breaksExclusion = kind.breaksExclusion === true;
    this.#judge.tell({ kind: "disturbed", fault, what: kind.name, breaksExclusion });
    this.#open.add(fault);
    await this.#counted(kind.name, happen);
    // Its consequences last: reconnects, leases that were given under it.
    const { ttlMs, roundingMs } = this.#deployment;
    const settled = setTimeout(
      () => {
        if (this.#open.delete(fault)) this.#judge.tell({ kind: "calmed", fault });
      },
      ttlMs + roundingMs + 500,
    );
    settled.unref();
  }

  async #disturbClients(endMs: number): Promise<void> {
    const dice = this.#clientDice;
    const { ttlMs } = this.#deployment;
    while (await this.#rested(dice, CLIENT_REST_MS, endMs)) {
      const client = dice.pick(this.#crowd.clients);
      const fault = dice.pick(this.#clientFaults(client));
      const forMs = dice.chance(0.7) ? dice.between(20, 0.7 * ttlMs) : dice.between(ttlMs, 2.2 * ttlMs);
      await this.#counted(fault.name, () => fault.run(client, forMs));
    }
  }

  #clientFaults({ block }: Client): ClientFault[] {
    const faults: ClientFault[] = [
      { name: "clients killed", run: (client) => this.#crowd.replace(client) },
      { name: "clients stopped", run: (client, forMs) => this.#stop(client, forMs) },
    ];
    if (block !== undefined) faults.push({ name: "event loops blocked", run: (_, forMs) => block(forMs) });
    return faults;
  }

  async #stop(client: Client, forMs: number): Promise<void> {
    this.#judge.tell({ kind: "stopped", victim: client.name });
    client.pause();
    await sleep(forMs);
    client.resume();
    this.#judge.tell({ kind: "resumed", victim: client.name });
  }

  async #counted(name: string, happen: () => Promise<void>): Promise<void> {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    this.#now.add(name);
    try {
      await happen();
    } finally {
      this.#now.delete(name);
    }
  }

  /** False when it is over. */
  async #rested(dice: Dice, [least, most]: readonly [number, number], endMs: number): Promise<boolean> {
    await sleep(Math.min(dice.between(least, most) / this.#pace, Math.max(0, endMs - performance.now())));
    return performance.now() < endMs;
  }
}
