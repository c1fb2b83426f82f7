/** Renewals of one turn travel together: one command to each node, however many locks are renewed. */
import { instant, type Clock, type Instant } from "../../engine/clock.ts";
import type { Electorate } from "./ballot.ts";
import type { RedlockNode } from "./node.ts";
import { lockKey, NODE_KEY, RENEW } from "./scripts.ts";
import type { Touched } from "./touched.ts";

export interface Renewal {
  readonly name: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly token: bigint;
  readonly client: string;
  /** Every node that is asked is added: it may have set the lock again. */
  readonly touched: Touched;
}

/** What one node said: see renew.lua. "silent": it did not answer, or has no vote. */
export type NodeAnswer = "held" | "joined" | "missing" | "evicted" | "lost" | "silent";

export interface RenewalResult {
  /** The instant before anything was sent. */
  readonly from: Instant;
  /** By the nodes' index. */
  readonly answers: readonly NodeAnswer[];
}

interface Waiting {
  readonly renewal: Renewal;
  readonly answers: NodeAnswer[];
  readonly resolve: (result: RenewalResult) => void;
}

/** At most this many renewals travel in one command. */
const LARGEST_BATCH = 200;

export class Renewals {
  readonly #electorate: Electorate;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];

  constructor(electorate: Electorate) {
    this.#electorate = electorate;
    this.#clock = electorate.clock;
  }

  /** Asks all nodes, with the batch of this turn of the event loop. Never rejects. One round trip. */
  renew(renewal: Renewal): Promise<RenewalResult> {
    return new Promise((resolve) => {
      const answers = this.#electorate.nodes.map((): NodeAnswer => "silent");
      this.#waiting.push({ renewal, answers, resolve });
      if (this.#waiting.length === 1) queueMicrotask(() => this.#send());
    });
  }

  #send(): void {
    // What was released in this same turn is not asked for: it would be set again.
    const waiting = this.#waiting.filter(({ renewal, answers, resolve }) => {
      if (renewal.touched.left) resolve({ from: instant(this.#clock), answers });
      return !renewal.touched.left;
    });
    this.#waiting = [];
    for (let from = 0; from < waiting.length; from += LARGEST_BATCH) {
      this.#round(waiting.slice(from, from + LARGEST_BATCH));
    }
  }

  /** Ends when all nodes have answered, or when their time is over: a renewal is in no hurry, and every answer counts. */
  #round(batch: readonly Waiting[]): void {
    const { nodes, terms } = this.#electorate;
    const from = instant(this.#clock);
    let open = nodes.length;
    const end = (): void => {
      timer.cancel();
      for (const { answers, resolve } of batch) resolve({ from, answers });
    };
    let timer = this.#clock.after(terms.nodeTimeoutMs, () => {
      timer = this.#clock.after(0, end);
    });
    for (const node of nodes) {
      void this.#ask(node, batch).finally(() => {
        if (--open === 0) end();
      });
    }
  }

  async #ask(node: RedlockNode, batch: readonly Waiting[]): Promise<void> {
    const { terms } = this.#electorate;
    if (!node.admitted) return;
    // A node whose clock is out of step keeps what it has, but gets nothing new: it has no vote.
    const joins = this.#electorate.trusts(node);
    const keys = [NODE_KEY, ...batch.map(({ renewal }) => lockKey(renewal.name))];
    const args = batch.flatMap(({ renewal }) => [
      renewal.owner,
      String(renewal.leaseMs),
      joins ? String(renewal.token) : "0",
      renewal.client,
    ]);
    const common = [node.run, String(terms.maxTtlMs), String(terms.rememberMs)];
    for (const { renewal } of batch) renewal.touched.asked(node);
    try {
      const reply = await node.eval(RENEW, keys, [...common, ...args]).finally(() => {
        for (const { renewal } of batch) renewal.touched.answered(node);
      });
      if (reply[0] === "foreign") {
        node.markForeign();
        return;
      }
      const counts = this.#electorate.trusts(node);
      for (const [index, { answers }] of batch.entries()) {
        const answer = reply[3 + index] as NodeAnswer;
        if (counts || answer !== "held") answers[node.index] = answer;
      }
    } catch {
      // Silent: the next round asks again.
    }
  }
}
