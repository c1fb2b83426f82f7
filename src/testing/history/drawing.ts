/** A violation as a time line in text: one line per request, time from left to right. */
import { endingOf, holdEndMs, pendingEndMs, type Ending, type History, type Operation } from "./operation.ts";
import type { Violation } from "./violation.ts";

const WIDTH = 72;
const MOST_LINES = 12;
/** How much is shown before and after, as a share of what matters. */
const BORDER = 0.25;

const END_MARKS: Record<Ending, string> = { released: "R", lost: "L", deadline: "D", killed: "K", open: "=" };
const LEGEND =
  ". waits   [ granted   = relies on it   R releases   D deadline   L lost   K killed   W write   x refused";

/** The picture, the times of what it shows, and what the letters mean. */
export function draw(history: History, violation: Violation): string {
  const scale = new Scale(violation);
  const operations = shown(history, violation, scale);
  const width = Math.max(...operations.map((each) => label(each).length), 8);
  const lines = operations.map((each) => `${label(each).padEnd(width)} ${line(history, each, scale)}`);
  for (const { what, fromMs, toMs } of history.disturbances) {
    if (toMs >= scale.fromMs && fromMs <= scale.toMs)
      lines.push(`${"fault".padEnd(width)} ${new Canvas(scale).fill(fromMs, toMs, "!").text} ${what}`);
  }
  for (const { process, fromMs, toMs } of history.absences) {
    if (toMs >= scale.fromMs && fromMs <= scale.toMs && operations.some((each) => each.process === process))
      lines.push(`${"stopped".padEnd(width)} ${new Canvas(scale).fill(fromMs, toMs, "z").text} ${process}`);
  }
  const first = relative(scale.fromMs, history);
  const last = relative(scale.toMs, history);
  const ruler = `${"".padEnd(width)} ${first}${last.padStart(WIDTH - first.length)}`;
  const times = violation.operations.flatMap((each) => account(history, each));
  return [`${violation.promise}: ${violation.text}`, ruler, ...lines, LEGEND, ...times].join("\n");
}

/** Maps time to columns. */
class Scale {
  readonly fromMs: number;
  readonly toMs: number;

  constructor({ operations, fromMs, toMs }: Violation) {
    const begin = Math.min(fromMs, ...operations.map((each) => each.grantedAtMs ?? each.requestedAtMs));
    const ends = operations.map((each) => Math.min(holdEndMs(each), each.releasedAtMs ?? Infinity));
    const end = Math.max(toMs, ...ends.filter((each) => Number.isFinite(each)));
    const span = Math.max(Number.isFinite(end) ? end - begin : 0, 1);
    this.fromMs = begin - BORDER * span;
    this.toMs = begin + (1 + BORDER) * span;
  }

  column(atMs: number): number {
    return Math.round(((atMs - this.fromMs) / (this.toMs - this.fromMs)) * (WIDTH - 1));
  }
}

class Canvas {
  readonly #cells: string[] = Array.from({ length: WIDTH }, () => " ");
  readonly #scale: Scale;

  constructor(scale: Scale) {
    this.#scale = scale;
  }

  fill(fromMs: number, toMs: number, mark: string): this {
    const from = Math.max(this.#scale.column(fromMs), 0);
    const to = Math.min(this.#scale.column(toMs), WIDTH - 1);
    for (let column = from; column <= to; column++) this.#cells[column] = mark;
    return this;
  }

  put(atMs: number, mark: string): void {
    const column = this.#scale.column(atMs);
    if (column >= 0 && column < WIDTH) this.#cells[column] = mark;
  }

  get text(): string {
    return this.#cells.join("");
  }
}

function line(history: History, operation: Operation, scale: Scale): string {
  const canvas = new Canvas(scale);
  canvas.fill(operation.requestedAtMs, pendingEndMs(operation), ".");
  const { grantedAtMs, refused } = operation;
  if (refused !== undefined) canvas.put(refused.atMs, "x");
  if (grantedAtMs === undefined) return canvas.text;
  const endMs = holdEndMs(operation);
  canvas.fill(grantedAtMs, Math.max(endMs, grantedAtMs), "=");
  canvas.put(endMs, END_MARKS[endingOf(operation)]);
  canvas.put(grantedAtMs, "[");
  for (const write of history.writes) {
    if (write.operation === operation) canvas.put(write.startedAtMs, write.answer?.accepted === false ? "x" : "W");
  }
  return canvas.text;
}

/** Those concerned, and others of the same name at that time. */
function shown(history: History, { operations }: Violation, scale: Scale): Operation[] {
  const [first] = operations;
  const others = history.operations.filter(
    (each) =>
      each.name === first?.name &&
      !operations.includes(each) &&
      each.requestedAtMs <= scale.toMs &&
      Math.min(each.grantedAtMs === undefined ? pendingEndMs(each) : holdEndMs(each)) >= scale.fromMs,
  );
  return [...operations, ...others].slice(0, MOST_LINES);
}

function label({ process, token, mode }: Operation): string {
  return `${process} ${mode === "shared" ? "shared " : ""}${token === undefined ? "" : `#${token}`}`.trimEnd();
}

/** The events of one request in words. */
function account(history: History, operation: Operation): string[] {
  const { requestedAtMs, queuedAtMs, grantedAtMs, untilMs, lost, releasingAtMs, releasedAtMs, refused, killedAtMs } =
    operation;
  const events: [number | undefined, string][] = [
    [requestedAtMs, "asks"],
    [queuedAtMs, "is in the queue"],
    [grantedAtMs, "is granted"],
    [refused?.atMs, `ends without it: ${refused?.why}`],
    [lost?.atMs, `is lost: ${lost?.why}`],
    [Number.isFinite(untilMs) ? untilMs : undefined, "its deadline, as last seen"],
    [releasingAtMs, "releases"],
    [releasedAtMs, "is released"],
    [killedAtMs, "its process is killed"],
  ];
  for (const { operation: by, startedAtMs, resource, answer } of history.writes) {
    if (by !== operation) continue;
    const what = answer === undefined ? "no answer" : answer.accepted ? "accepted" : "refused";
    events.push([startedAtMs, `writes to ${JSON.stringify(resource)}: ${what}`]);
  }
  const told = events.filter((each): each is [number, string] => each[0] !== undefined);
  told.sort(([left], [right]) => left - right);
  return told.map(([atMs, what]) => `  ${relative(atMs, history).padStart(12)}  ${label(operation)} ${what}`);
}

/** Ms since the history began. */
function relative(atMs: number, { startMs }: History): string {
  return Number.isFinite(atMs) ? `${(atMs - startMs).toFixed(1)} ms` : "…";
}
