/** Writes a history, from any number of processes, such that a kill loses nothing that was told. */
import { openSync, closeSync, readFileSync, writeSync } from "node:fs";
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { LockMode } from "../../index.ts";
import type { HistoryEvent, Untold } from "./event.ts";

/** Where the events of one process go. */
export interface HistorySink {
  write(event: HistoryEvent): void;
  close(): void;
}

/**
 * Appends to a file of this process's own. Each event is handed to the system before `write` returns, so SIGKILL loses
 * none; a crash of the whole machine may. About 5 µs an event.
 */
export function historyFile(path: string): HistorySink {
  const file = openSync(path, "a", 0o600);
  return {
    write: (event) => void writeSync(file, `${JSON.stringify(event)}\n`),
    close: () => closeSync(file),
  };
}

/** Keeps the events in memory, for a history within one process. */
export function historyArray(events: HistoryEvent[]): HistorySink {
  return { write: (event) => void events.push(event), close: () => {} };
}

/** The events of several files in the order of their time. A last line that was never finished is left out. */
export function readHistory(paths: readonly string[]): HistoryEvent[] {
  const events = paths.flatMap((path) => {
    const lines = readFileSync(path, "utf8").split("\n");
    lines.pop(); // empty, or cut off by a kill
    return lines.map((line) => JSON.parse(line) as HistoryEvent);
  });
  return events.sort((left, right) => left.atMs - right.atMs);
}

export interface RecordedWish {
  readonly name: string;
  readonly mode?: LockMode | undefined;
  /** How many shared holders there may be at once. Default: any number for shared, 1 for exclusive. */
  readonly limit?: number | undefined;
}

/** What the recorder has to know of a grant. `HeldLock` fits. */
export interface RecordedGrant {
  /** Without one its order is judged by time alone. */
  readonly token?: bigint | undefined;
  remainingMs(): number;
}

export class HistoryRecorder {
  readonly process: string;
  readonly #sink: HistorySink;
  readonly #clock: Clock;
  #lastId = 0;

  /** `process` names the teller, one per process and incarnation. */
  constructor(process: string, sink: HistorySink, clock: Clock = systemClock) {
    this.process = process;
    this.#sink = sink;
    this.#clock = clock;
  }

  /** Call it before the lock is asked for. */
  request({ name, mode = "exclusive", limit }: RecordedWish): RecordedRequest {
    const id = this.newId();
    const most = mode === "exclusive" ? 1 : (limit ?? Infinity);
    this.tell({ kind: "requested", id, name, mode, limit: Number.isFinite(most) ? most : null });
    return new RecordedRequest(this, id, this.#clock);
  }

  tell(event: Untold<HistoryEvent>, atMs: number = this.#clock.monotonicMs()): void {
    this.#sink.write({ atMs, process: this.process, ...event });
  }

  newId(): string {
    return `${this.process}/${++this.#lastId}`;
  }

  close(): void {
    this.#sink.close();
  }
}

/** The life of one request, told by whoever made it. */
export class RecordedRequest {
  readonly id: string;
  readonly #recorder: HistoryRecorder;
  readonly #clock: Clock;

  constructor(recorder: HistoryRecorder, id: string, clock: Clock) {
    this.#recorder = recorder;
    this.id = id;
    this.#clock = clock;
  }

  /** Somebody has seen it in the queue. */
  queued(): void {
    this.#recorder.tell({ kind: "queued", id: this.id });
  }

  /** Without a lock to ask: the holder relies on it for ever, as naive locks are used. */
  granted(lock?: RecordedGrant): void {
    // The time is read first: a process that is paused between the two reads then claims too little, not too much.
    const atMs = this.#clock.monotonicMs();
    const untilMs = lock === undefined ? null : atMs + lock.remainingMs();
    const token = lock?.token === undefined ? null : String(lock.token);
    this.#recorder.tell({ kind: "granted", id: this.id, token, untilMs }, atMs);
  }

  /** The holder looks again; nothing is told when it holds no more. */
  look(lock: RecordedGrant): void {
    const atMs = this.#clock.monotonicMs();
    const leftMs = lock.remainingMs();
    if (leftMs > 0) this.#recorder.tell({ kind: "held", id: this.id, untilMs: atMs + leftMs }, atMs);
  }

  lost(why: string): void {
    this.#recorder.tell({ kind: "lost", id: this.id, why });
  }

  /** Call it before the release. */
  releasing(): void {
    this.#recorder.tell({ kind: "releasing", id: this.id });
  }

  released(): void {
    this.#recorder.tell({ kind: "released", id: this.id });
  }

  refused(why: string): void {
    this.#recorder.tell({ kind: "refused", id: this.id, why });
  }

  /** Call it before the write; the returned function takes the guard's answer. `write` travels with the data. */
  writing(resource: string): { readonly write: string; done(accepted: boolean): void } {
    const write = this.#recorder.newId();
    this.#recorder.tell({ kind: "writing", id: this.id, write, resource });
    return { write, done: (accepted) => this.#recorder.tell({ kind: "written", write, accepted }) };
  }
}
