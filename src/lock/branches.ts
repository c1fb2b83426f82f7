/** The branches of one scope that enter its hold again: they run one after the other, in the order in which they came. */
export class Branches {
  #last: Promise<void> = Promise.resolve();
  #count = 0;

  /** Whether a branch runs or waits. */
  get busy(): boolean {
    return this.#count > 0;
  }

  /** Resolves when it is this branch's turn, to what ends it. Rejects with the signal's reason; the turn is then skipped. */
  async turn(signal: AbortSignal | undefined): Promise<() => void> {
    signal?.throwIfAborted();
    const before = this.#last;
    const ended = Promise.withResolvers<void>();
    this.#last = ended.promise;
    this.#count++;
    const end = (): void => {
      this.#count--;
      ended.resolve();
    };
    const aborted = Promise.withResolvers<never>();
    const onAbort = (): void => aborted.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await Promise.race([before, aborted.promise]);
      return end;
    } catch (error) {
      void before.then(end);
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Resolves when no branch runs or waits. */
  async idle(): Promise<void> {
    while (this.#count > 0) await this.#last;
  }
}
