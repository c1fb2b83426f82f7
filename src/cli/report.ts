/**
 * Lines on standard error. Writing them must never hold up the work: a full pipe or a terminal after Ctrl-S would stop
 * the renewals of a lock. Nor may it touch the mode of the pipe, which COMMAND shares. So pipes and terminals
 * are opened once more for ourselves, without blocking, and a line that does not fit is dropped.
 */
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { Writable } from "node:stream";
import { isatty } from "node:tty";
import { systemClock } from "../engine/clock.ts";
import { withoutSecrets } from "./secrets.ts";

const STDERR = 2;
/** How long the last line may wait for room, when no lock depends on us any more. */
const LAST_LINE_MS = 1_000;
const RETRY_MS = 20;

let channel: number | undefined;

function open(): number {
  try {
    if (fstatSync(STDERR).isFile()) return STDERR;
    return openSync("/proc/self/fd/2", constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDERR; // a socket, or no /proc
  }
}

/** Whether it was written. Never throws: nobody may be listening (EPIPE). */
function write(line: string): boolean {
  return writeRaw(`holdfast: ${withoutSecrets(line)}\n`);
}

function writeRaw(text: string): boolean {
  channel ??= open();
  try {
    writeSync(channel, text);
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "EAGAIN");
  }
}

/**
 * Node makes its own stream for standard error as soon as somebody looks at `process.stderr`, its own sockets do, and
 * that sets the pipe to non-blocking, under COMMAND's feet. So this one takes its place before anybody looks.
 */
export function leaveStderrAlone(): void {
  const stderr = new Writable({
    decodeStrings: false,
    write(chunk: unknown, _encoding, done) {
      writeRaw(String(chunk));
      done();
    },
  });
  Object.defineProperty(process, "stderr", { value: stderr, configurable: true, enumerable: true });
}

/** Writes `holdfast: line`, or drops it when it would block. */
export function say(line: string): void {
  write(line);
}

/** Writes `holdfast: line`; waits a second for room. For use when nothing is held any more. */
export async function sayLast(line: string): Promise<void> {
  const until = systemClock.monotonicMs() + LAST_LINE_MS;
  while (!write(line) && systemClock.monotonicMs() < until) await new Promise((done) => setTimeout(done, RETRY_MS));
  if (channel !== undefined && channel !== STDERR) closeSync(channel);
  channel = undefined;
}

export function stderrIsTerminal(): boolean {
  return isatty(STDERR);
}
