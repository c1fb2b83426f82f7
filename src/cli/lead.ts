/** `holdfast lead`: COMMAND runs while we lead, and again in each further term. */
import { isatty } from "node:tty";
import { systemClock } from "../engine/clock.ts";
import { EngineUnavailableError } from "../engine/errors.ts";
import type { Arguments } from "./arguments.ts";
import { EXIT, Failure, QuietExit } from "./exit-codes.ts";
import { prepareRun, runOnce } from "./run.ts";
import { say } from "./report.ts";
import { printable } from "./shell-words.ts";
import { signalNumber, Signals } from "./signals.ts";

const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 10_000;
const STDIN = 0;

/**
 * Resolves to COMMAND's exit code when it ends by itself: we resign. When the term ends first, COMMAND is stopped and we
 * stand again; so too while the store cannot be reached.
 */
export async function lead(given: Arguments): Promise<number> {
  const prepared = prepareRun(given, isatty(STDIN));
  const { name, foreground, quiet } = prepared.options;
  const signals = new Signals(foreground);
  let retryMs = FIRST_RETRY_MS;
  for (;;) {
    const startedMs = systemClock.monotonicMs();
    try {
      return await runOnce(prepared, signals);
    } catch (error) {
      const lost = error instanceof Failure && error.exitCode === EXIT.lost;
      if (!lost && !(error instanceof EngineUnavailableError)) throw error;
      if (!quiet)
        say(`${lost ? "term over" : "no election"} (${error.message}); standing again for ${printable(name)}`);
      if (systemClock.monotonicMs() - startedMs > LONGEST_RETRY_MS) retryMs = FIRST_RETRY_MS;
    }
    signals.again();
    await pause(retryMs * (0.5 + Math.random() / 2), signals.waiting);
    if (signals.endedWait !== undefined) throw new QuietExit(EXIT.signal + signalNumber(signals.endedWait));
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
