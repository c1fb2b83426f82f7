/** All clients of a run. Killed ones are born again under a new name. */
import type { HistoryRecorder } from "../../../src/testing/history/index.ts";
import { startClient, type Client, type Cradle } from "./client.ts";

const LANES = 4;

export class Crowd {
  readonly #cradle: Cradle;
  readonly #judge: HistoryRecorder;
  readonly #seed: number;
  readonly #size: number;
  #clients: Client[] = [];
  readonly #dead: Client[] = [];
  #births = 0;

  constructor(cradle: Cradle, judge: HistoryRecorder, seed: number, size: number) {
    this.#cradle = cradle;
    this.#judge = judge;
    this.#seed = seed;
    this.#size = size;
  }

  get clients(): readonly Client[] {
    return this.#clients;
  }

  async start(): Promise<void> {
    this.#clients = await Promise.all(Array.from({ length: this.#size }, (_, index) => this.#birth(`client-${index}`)));
  }

  /** SIGKILL; another one takes its place. */
  async replace(victim: Client): Promise<void> {
    this.#judge.tell({ kind: "killed", victim: victim.name });
    await victim.kill();
    this.#dead.push(victim);
    const [base = "", life = "0"] = victim.name.split(".");
    const heir = await this.#birth(`${base}.${Number(life) + 1}`);
    this.#clients = this.#clients.map((each) => (each === victim ? heir : each));
  }

  async finish(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.finish()));
  }

  /** All queue for `name`, one after the other, and are served. The history says in which order they stood. */
  async lineUp(name: string): Promise<void> {
    for (const [ahead, client] of this.#clients.entries()) await client.queueUp(name, ahead);
    await Promise.all(this.#clients.map((client) => client.leave(name)));
  }

  async close(complaints: string[]): Promise<void> {
    const left = await Promise.all(this.#clients.map((client) => client.close()));
    for (const [index, client] of this.#clients.entries())
      complaints.push(...(left[index] ?? []).map((what) => `${client.name} closed and left ${what}`));
    this.#clients = [];
  }

  /** Whatever has happened, nothing runs any more afterwards. */
  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.kill()));
    await Promise.all([...this.#clients, ...this.#dead].map(async (client) => await client.bury?.()));
  }

  #birth(name: string): Promise<Client> {
    const { ttlMs, traits } = this.#cradle.deployment;
    const seed = this.#seed * 1_000 + this.#births++;
    return startClient(this.#cradle, name, { seed, lanes: LANES, ttlMs, traits });
  }
}
