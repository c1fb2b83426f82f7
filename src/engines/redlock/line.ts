/**
 * The requests of this process that wait for one name, first come first served among themselves. Only the head
 * contends with other processes, so a process never splits the votes with itself.
 */
import type { Alarm, Alarms } from "../../engine/alarms.ts";
import type { Departures } from "../../engine/departures.ts";
import type { Client } from "../../engine/engine.ts";
import type { Electorate } from "./ballot.ts";
import { ANNOUNCE, lockKey, waitKey } from "./scripts.ts";

export interface LineGround {
  readonly electorate: Electorate;
  readonly alarms: Alarms;
  readonly departures: Departures;
  readonly bell: string;
  /** The line is empty. */
  forget(line: Line): void;
}

/** What the nodes are told of the requests of one process that wait for a name. */
export interface Announcement extends Client {
  readonly waiting: readonly { readonly sinceMs: number; readonly value?: string | undefined }[];
}

export interface Place {
  readonly sinceMs: number;
  /** How long it stands on the nodes unless it is announced again. */
  readonly pendingTtlMs: number;
  /** Published by its request. */
  readonly value: string | undefined;
  /** Called when it comes to the front. */
  onTurn: (() => void) | undefined;
}

/** At most so many processes are rung for one name; others learn by asking again. */
const MOST_PROCESSES = 256;
/** At most so many requests of a process are shown to others. */
const MOST_SHOWN = 100;
/** After the first node's bell, how long to wait for those of a quorum. */
const GATHER_MS = 10;

export class Line {
  readonly name: string;
  readonly #ground: LineGround;
  readonly #client: Client;
  readonly #places: Place[] = [];
  readonly #rungBy = new Set<number>();
  #rungProcesses = 0;
  #wake: (() => void) | undefined;
  #alarm: Alarm | undefined;
  #announced = false;

  constructor(ground: LineGround, name: string, client: Client) {
    this.#ground = ground;
    this.name = name;
    this.#client = client;
  }

  get places(): readonly Place[] {
    return this.#places;
  }

  /** How many processes the last bell woke. */
  get rungProcesses(): number {
    return this.#rungProcesses;
  }

  join(place: Place): void {
    this.#places.push(place);
    if (this.#announced) void this.#announce();
  }

  leave(place: Place): void {
    const index = this.#places.indexOf(place);
    if (index < 0) return;
    this.#places.splice(index, 1);
    if (index === 0) {
      this.#settle();
      this.#places[0]?.onTurn?.();
    }
    if (this.#announced) this.#withdraw(place);
    if (this.#places.length === 0) this.#ground.forget(this);
  }

  /**
   * Tells the nodes who waits, so that a release rings us from now on. Resolves to the ms in which a quorum of nodes will
   * be free of others by itself: 0 when it is now. Call again to keep it standing. One round trip.
   */
  listen(): Promise<number> {
    this.#rungBy.clear();
    return this.#announce();
  }

  /** Tells the nodes that `place` waits no more. Closing waits for their answers. */
  #withdraw({ pendingTtlMs }: Place): void {
    const { departures, electorate } = this.#ground;
    const told = this.#announce(electorate.nodes.length);
    void departures.depart(() => told.then(() => {}), electorate.clock.monotonicMs() + pendingTtlMs);
  }

  /** Resolves when so many nodes have said that they are free of others, or when all have answered. */
  async #announce(enough = this.#ground.electorate.terms.quorum): Promise<number> {
    const { electorate, bell } = this.#ground;
    const { quorum } = electorate.terms;
    const lastingMs = Math.ceil(Math.max(0, ...this.#places.map(({ pendingTtlMs }) => pendingTtlMs)));
    this.#announced = lastingMs > 0;
    const { clientId, host, pid } = this.#client;
    const waiting = this.#places.slice(0, MOST_SHOWN).map(({ sinceMs, value }) => ({ sinceMs, value }));
    const who = JSON.stringify({ clientId, host, pid, waiting } satisfies Announcement);
    const args = [bell, String(lastingMs), who, String(MOST_PROCESSES)];
    const keys = [lockKey(this.name), waitKey(this.name)];
    return await new Promise((resolve) => {
      const lefts: number[] = [];
      let open = 0;
      const settle = (): void => {
        lefts.sort((left, right) => left - right);
        const freeInMs = lefts[quorum - 1] ?? Infinity;
        if (open === 0 || (freeInMs === 0 && lefts.length >= enough)) resolve(freeInMs);
      };
      for (const node of electorate.nodes) {
        if (!node.admitted) continue;
        open++;
        node.eval(ANNOUNCE, keys, args).then(
          (reply) => {
            open--;
            lefts.push(Number(reply[3]));
            settle();
          },
          () => {
            open--;
            settle();
          },
        );
      }
      if (open === 0) settle();
    });
  }

  /** A node says that the name was released there. The head goes once a quorum has said so, or a moment later. */
  rung(node: number, processes: number): void {
    this.#rungProcesses = processes;
    this.#rungBy.add(node);
    const { electorate, alarms } = this.#ground;
    if (this.#rungBy.size >= electorate.terms.quorum) this.#settle();
    else if (this.#rungBy.size === 1 && this.#wake !== undefined)
      this.#wakeAt(alarms, electorate.clock.monotonicMs() + GATHER_MS);
  }

  /** Bells may have been lost. */
  check(): void {
    this.#settle();
  }

  /** Resolves with the next bell, or after `ms`. One caller at a time: the head. */
  nextBell(ms: number): Promise<void> {
    const { electorate, alarms } = this.#ground;
    if (this.#rungBy.size >= electorate.terms.quorum) return Promise.resolve();
    const atMs = electorate.clock.monotonicMs() + (this.#rungBy.size > 0 ? Math.min(ms, GATHER_MS) : ms);
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#wakeAt(alarms, atMs);
    });
  }

  #wakeAt(alarms: Alarms, atMs: number): void {
    this.#alarm?.cancel();
    this.#alarm = alarms.set(atMs, () => this.#settle());
  }

  #settle(): void {
    this.#alarm?.cancel();
    this.#alarm = undefined;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
