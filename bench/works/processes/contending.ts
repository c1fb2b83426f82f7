/** What a contending process does: takes and gives back one lock for as long as it is told to, and reports when it was inside. */
export type Acquire = () => Promise<() => Promise<unknown>>;

/** When which of its workers was inside, on the monotonic clock that all processes share, in ms. */
export type Span = readonly [from: number, to: number, worker: number];

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** `workers` side by side. Ends when the parent lets go. */
export function contend(acquire: Acquire, workers: number): void {
  process.on("message", (ms: number) => {
    const spans: Span[] = [];
    const until = nowMs() + ms;
    const work = async (worker: number): Promise<void> => {
      while (nowMs() < until) {
        const release = await acquire();
        const from = nowMs();
        spans.push([from, nowMs(), worker]);
        await release();
      }
    };
    void Promise.all(Array.from({ length: workers }, (_, worker) => work(worker))).then(() => process.send?.(spans));
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}
