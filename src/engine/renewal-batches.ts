/** Collects the renewals of one turn and sends them together: one command for many requests, not one each. */
import type { Answer, LeaseStore, Renewal } from "./lease-store.ts";

/** At most this many renewals travel in one command. */
export const LARGEST_BATCH = 500;

interface Waiting {
  readonly renewal: Renewal;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export class RenewalBatches {
  readonly #store: LeaseStore;
  #waiting: Waiting[] = [];

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Renews with the batch of this turn of the event loop. Rejects when the whole batch failed. */
  renew(renewal: Renewal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ renewal, resolve, reject });
      if (this.#waiting.length === 1) queueMicrotask(() => this.#send());
    });
  }

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < waiting.length; from += LARGEST_BATCH) {
      void this.#sendOne(waiting.slice(from, from + LARGEST_BATCH));
    }
  }

  async #sendOne(batch: readonly Waiting[]): Promise<void> {
    try {
      const answers = await this.#store.renew(batch.map((each) => each.renewal));
      for (const [index, each] of batch.entries()) {
        const answer = answers[index];
        if (answer === undefined) each.reject(new Error("the store answered fewer renewals than were sent"));
        else each.resolve(answer);
      }
    } catch (error) {
      for (const each of batch) each.reject(error);
    }
  }
}
