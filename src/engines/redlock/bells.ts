/** Wake-ups from the nodes: one channel for this process, on every node. Opened with the first request that waits. */
import type { Clock } from "../../engine/clock.ts";
import { Link } from "../../redis/link.ts";
import type { RedlockNode } from "./node.ts";
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
/** A frozen node is not waited for: the others ring, and a waiter looks by itself after a keep-alive period. */
const PATIENCE_MS = 250;

export class Bells {
  readonly #links: Link[];
  readonly #clock: Clock;
  #opened: Promise<void> | undefined;
  /** `open` has resolved: whoever listens from now on may have missed something. */
  #isOpen = false;

  constructor(bell: string, nodes: readonly RedlockNode[], clock: Clock, events: BellEvents) {
    this.#clock = clock;
    this.#links = nodes.map(
      (node) =>
        new Link({
          clock,
          openTimeoutMs: OPEN_TIMEOUT_MS,
          open: () => node.source.openSubscriber(),
          prepare: async (connection) => {
            await connection.subscribe(BELL_PREFIX + bell, (message) => ring(events, node.index, message));
            if (this.#isOpen) events.missed();
          },
        }),
    );
  }

  /**
   * Resolves when every node listens, or has failed to once, or is not answering: those go on trying. A node that is
   * subscribed to after that counts as one whose bells may have been missed. Never rejects.
   */
  open(): Promise<void> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #open(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(PATIENCE_MS, resolve);
      void Promise.allSettled(this.#links.map((link) => link.open())).then(() => {
        timer.cancel();
        resolve();
      });
    });
    this.#isOpen = true;
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
