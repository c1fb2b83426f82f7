/** What a planted lock looks like, and the doors at which a test can hold it up. */
import type { RecordedGrant } from "../../../src/testing/history/index.ts";

export interface PlantedLock {
  /** Resolves when it is granted; to nothing where the holder simply relies on the lock, as the articles' do. */
  acquire(): Promise<RecordedGrant | undefined>;
  release(): Promise<void>;
  /** What is left of it when its process is gone. */
  die(): void;
  close(): Promise<void>;
}

/** Places in a lock's code where the world may go on before it does: a pause, a slow network, the scheduler. */
export class Doors {
  readonly #closed = new Map<string, { readonly opened: Promise<void>; readonly open: () => void; here: () => void }>();

  /** Whoever comes to `door` waits there. Resolves when somebody does. */
  close(door: string): Promise<void> {
    return new Promise((here) => {
      const { promise: opened, resolve: open } = Promise.withResolvers<void>();
      this.#closed.set(door, { opened, open, here });
    });
  }

  open(door: string): void {
    this.#closed.get(door)?.open();
    this.#closed.delete(door);
  }

  async pass(door: string): Promise<void> {
    const closed = this.#closed.get(door);
    closed?.here();
    await closed?.opened;
  }
}
