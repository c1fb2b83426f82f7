/** Puts events together: one `Operation` per request, with everything that is known of it. */
import type { HistoryEvent } from "./event.ts";
import type { Absence, Disturbance, History, Operation, Write } from "./operation.ts";

/** `events` in the order of their time, as `readHistory` returns them. Throws for an event of an unknown request. */
export function assemble(events: readonly HistoryEvent[]): History {
  const assembly = new Assembly();
  for (const event of events) assembly.add(event);
  return assembly.history(events[0]?.atMs ?? 0, events.at(-1)?.atMs ?? 0);
}

class Assembly {
  readonly #operations = new Map<string, Operation>();
  readonly #writes = new Map<string, Write>();
  readonly #resources = new Map<string, number>();
  readonly #strangers: string[] = [];
  readonly #disturbances = new Map<string, Disturbance>();
  readonly #absences: Absence[] = [];
  readonly #absent = new Map<string, Absence>();
  /** What may still be going on, by process. */
  readonly #alive = new Map<string, Set<Operation>>();
  readonly #dead = new Map<string, number>();

  add(event: HistoryEvent): void {
    switch (event.kind) {
      case "requested":
        this.#request(event.id, event);
        break;
      case "writing":
      case "written":
      case "applied":
        this.#write(event);
        break;
      case "killed":
        for (const operation of this.#alive.get(event.victim) ?? []) operation.killedAtMs = event.atMs;
        this.#alive.delete(event.victim);
        this.#dead.set(event.victim, event.atMs);
        break;
      case "stopped":
        this.#stop(event.victim, event.atMs);
        break;
      case "resumed":
        this.#resume(event.victim, event.atMs);
        break;
      case "disturbed": {
        const { what, atMs, breaksExclusion } = event;
        this.#disturbances.set(event.fault, { what, fromMs: atMs, toMs: Infinity, breaksExclusion });
        break;
      }
      case "calmed": {
        const disturbance = this.#disturbances.get(event.fault);
        if (disturbance !== undefined) disturbance.toMs = event.atMs;
        break;
      }
      case "ended":
        break;
      default:
        this.#live(this.#operation(event.id), event);
    }
  }

  history(startMs: number, endMs: number): History {
    return {
      operations: [...this.#operations.values()],
      writes: [...this.#writes.values()],
      resources: new Set(this.#resources.keys()),
      strangers: this.#strangers,
      disturbances: [...this.#disturbances.values()],
      absences: this.#absences,
      startMs,
      endMs,
    };
  }

  #request(id: string, event: HistoryEvent & { kind: "requested" }): void {
    const { process, name, mode, limit, atMs: requestedAtMs } = event;
    const operation: Operation = {
      id,
      process,
      name,
      mode,
      limit: limit ?? Infinity,
      requestedAtMs,
      untilMs: -Infinity,
      queuedAtMs: undefined,
      grantedAtMs: undefined,
      token: undefined,
      lost: undefined,
      releasingAtMs: undefined,
      releasedAtMs: undefined,
      refused: undefined,
      // Between the announcement of a kill and the kill itself a process may still tell something.
      killedAtMs: this.#dead.get(process),
    };
    this.#operations.set(id, operation);
    let alive = this.#alive.get(process);
    if (alive === undefined) this.#alive.set(process, (alive = new Set()));
    alive.add(operation);
  }

  #live(operation: Operation, event: HistoryEvent): void {
    const { atMs } = event;
    switch (event.kind) {
      case "queued":
        operation.queuedAtMs ??= atMs;
        break;
      case "granted":
        operation.grantedAtMs = atMs;
        operation.token = event.token === null ? undefined : BigInt(event.token);
        operation.untilMs = event.untilMs ?? Infinity;
        break;
      case "held":
        operation.untilMs = Math.max(operation.untilMs, event.untilMs);
        break;
      case "lost":
        operation.lost ??= { atMs, why: event.why };
        break;
      case "releasing":
        operation.releasingAtMs ??= atMs;
        break;
      case "released":
        operation.releasedAtMs ??= atMs;
        this.#alive.get(operation.process)?.delete(operation);
        break;
      case "refused":
        operation.refused ??= { atMs, why: event.why };
        this.#alive.get(operation.process)?.delete(operation);
        break;
      default:
        throw new Error(`${event.kind} is no event of a request`);
    }
  }

  #write(event: HistoryEvent & { kind: "writing" | "written" | "applied" }): void {
    if (event.kind === "writing") {
      const { write: id, resource, atMs: startedAtMs } = event;
      const operation = this.#operation(event.id);
      this.#writes.set(id, { id, operation, resource, startedAtMs, answer: undefined, place: undefined });
      return;
    }
    const write = this.#writes.get(event.write);
    if (event.kind === "applied") {
      const place = this.#resources.get(event.resource) ?? 0;
      this.#resources.set(event.resource, place + 1);
      if (write === undefined || write.place !== undefined) this.#strangers.push(event.write);
      else write.place = place;
    } else if (write !== undefined) {
      write.answer = { atMs: event.atMs, accepted: event.accepted };
    }
  }

  #stop(process: string, fromMs: number): void {
    const absence = { process, fromMs, toMs: Infinity };
    this.#absent.set(process, absence);
    this.#absences.push(absence);
  }

  #resume(process: string, atMs: number): void {
    const absence = this.#absent.get(process);
    if (absence !== undefined) absence.toMs = atMs;
    this.#absent.delete(process);
  }

  #operation(id: string): Operation {
    const operation = this.#operations.get(id);
    if (operation === undefined) throw new Error(`the history has no request ${id}`);
    return operation;
  }
}
