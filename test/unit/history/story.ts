/** Histories written by hand: short sentences, times in ms. */
import type { HistoryEvent, Untold } from "../../../src/testing/history/event.ts";
import { checkHistory, countByPromise, type HistoryOptions } from "../../../src/testing/history/index.ts";

export class Story {
  readonly events: HistoryEvent[] = [];

  tell(process: string, atMs: number, event: Untold<HistoryEvent>): this {
    this.events.push({ atMs, process, ...event });
    return this;
  }

  /** `process` asks at `askMs`, is granted at `from`, with a deadline at `until`. The id is the process's name. */
  holds(
    process: string,
    [from, until]: readonly [number, number | null],
    more: { token?: number | null; ask?: number; limit?: number; shared?: boolean; name?: string; id?: string } = {},
  ): this {
    const { token = from, ask = from - 1, limit, shared = limit !== undefined, name = "n", id = process } = more;
    const mode = shared ? "shared" : "exclusive";
    this.asks(process, ask, { id, name, mode, limit: shared ? (limit ?? null) : 1 });
    return this.tell(process, from, {
      kind: "granted",
      id,
      token: token === null ? null : String(token),
      untilMs: until,
    });
  }

  asks(
    process: string,
    atMs: number,
    {
      id = process,
      name = "n",
      mode = "exclusive",
      limit = 1,
    }: { id?: string; name?: string; mode?: "exclusive" | "shared"; limit?: number | null } = {},
  ): this {
    return this.tell(process, atMs, { kind: "requested", id, name, mode, limit });
  }

  releases(process: string, atMs: number, confirmedMs: number = atMs, id: string = process): this {
    this.tell(process, atMs, { kind: "releasing", id });
    return this.tell(process, confirmedMs, { kind: "released", id });
  }

  /** A write at `atMs`, answered 1 ms later; `accepted` undefined: no answer. */
  writes(process: string, atMs: number, write: string, accepted?: boolean): this {
    this.tell(process, atMs, { kind: "writing", id: process, write, resource: "r" });
    return accepted === undefined ? this : this.tell(process, atMs + 1, { kind: "written", write, accepted });
  }

  remembered(atMs: number, ...writes: readonly string[]): this {
    for (const write of writes) this.tell("judge", atMs, { kind: "applied", resource: "r", write });
    return this;
  }

  disturbed(fromMs: number, toMs: number, breaksExclusion = false): this {
    const fault = `fault ${fromMs}`;
    this.tell("judge", fromMs, { kind: "disturbed", fault, what: "something", breaksExclusion });
    return this.tell("judge", toMs, { kind: "calmed", fault });
  }

  /** The history goes on to `atMs`. */
  until(atMs: number): this {
    return this.tell("judge", atMs, { kind: "ended" });
  }

  get history(): HistoryEvent[] {
    return this.events.toSorted((left, right) => left.atMs - right.atMs);
  }

  /** How many violations of each promise the checker finds. */
  verdict(options: HistoryOptions = { passesOnWithinMs: 1_000, complete: true }): Record<string, number> {
    return countByPromise(checkHistory(this.history, options).violations);
  }

  excused(): number {
    return checkHistory(this.history).excused.length;
  }
}
