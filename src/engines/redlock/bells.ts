/** Wake-ups from the nodes: one channel for this process, on every node. Opened with the first request that waits. */
import { type Clock } from "../../engine/clock.ts";
import { Link } from "../../redis/link.ts";
import { type RedlockNode } from "./node.ts";
import { BELL_PREFIX } from "./scripts.ts";

export interface BellEvents {
  /** `name` was released on one node; so many processes are told. */
  free(name: string, node: number, rung: number): void;
  /** Our lock of `name` was taken away by hand. */
  evicted(name: string): void;
  /** Bells may have been lost. */
  missed(): void;
}

const OPEN_TIMEOUT_MS = 5_000;

export class Bells {
  readonly #links: Link[];
  #opened: Promise<void> | undefined;

  constructor(bell: string, nodes: readonly RedlockNode[], clock: Clock, events: BellEvents) {
    this.#links = nodes.map((node) => {
      let again = false;
      return new Link({
        clock,
        openTimeoutMs: OPEN_TIMEOUT_MS,
        open: () => node.source.openSubscriber(),
        prepare: async (connection) => {
          await connection.subscribe(BELL_PREFIX + bell, (message) => ring(events, node.index, message));
          if (again) events.missed();
          again = true;
        },
      });
    });
  }

  /** Resolves when every node listens, or has failed to once; those go on trying. Never rejects. */
  open(): Promise<void> {
    this.#opened ??= Promise.allSettled(this.#links.map((link) => link.open())).then(() => {});
    return this.#opened;
  }

  close(): void {
    for (const link of this.#links) link.close();
  }
}

function ring(events: BellEvents, node: number, message: string): void {
  const [, verb, rung, name] = /^([a-z]+)\|(\d+)\|(.*)$/s.exec(message) ?? [];
  if (name === undefined) return;
  if (verb === "free") events.free(name, node, Number(rung));
  else if (verb === "evicted") events.evicted(name);
}
