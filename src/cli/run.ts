/** `holdfast run`: COMMAND runs while NAME is held. */
import { isatty } from "node:tty";
import { LockLostError } from "../engine/errors.ts";
import type { AcquireOptions } from "../index.ts";
import type { Arguments } from "./arguments.ts";
import { describeMs } from "./duration.ts";
import { checkExecutable } from "./executable.ts";
import { EXIT, Failure, QuietExit } from "./exit-codes.ts";
import { Guard } from "./guard.ts";
import { checkNotHeld, HELD_VARIABLE, type HeldNames, readHeldNames, writeHeldNames } from "./held-names.ts";
import { type Holding, holdWhile } from "./holding.ts";
import { type Ended, launch, type Launched } from "./launch.ts";
import { leaveStderrAlone, say } from "./report.ts";
import { readRunOptions, type RunOptions } from "./run-options.ts";
import { printable } from "./shell-words.ts";
import { signalNumber, Signals } from "./signals.ts";
import { chooseStore, openLocks, scopeOf, type Store } from "./store.ts";
import { type Outcome, Supervisor } from "./supervisor.ts";
import { busyOr, explainWait } from "./waiting.ts";

/** COMMAND is gone this long before the lease ends: a share of the lease, within these. */
const SLACK_SHARE = 0.02;
const SHORTEST_SLACK_MS = 5;
const LONGEST_SLACK_MS = 250;
const STDIN = 0;

interface Task extends Prepared {
  readonly signals: Signals;
  readonly launched: Launched;
  readonly guard: Guard;
  readonly slackMs: number;
}

/** What is known before anything is started. */
export interface Prepared {
  readonly options: RunOptions;
  readonly store: Store;
  readonly outer: HeldNames;
  /** The process ends with this run. */
  readonly isLast: boolean;
}

/** Resolves to the exit code. Errors: `Failure` and those of the library. */
export async function run(given: Arguments): Promise<number> {
  const prepared = prepareRun(given, isatty(STDIN));
  return await runOnce(prepared, new Signals(prepared.options.foreground));
}

/** Errors: `Failure`. */
export function prepareRun(given: Arguments, stdinIsTerminal: boolean): Prepared {
  const options = readRunOptions(given, stdinIsTerminal);
  const outer = readHeldNames(process.env[HELD_VARIABLE]);
  for (const name of [options.name, ...options.also]) checkNotHeld(outer, name);
  checkExecutable(options.command[0] ?? "", process.env["PATH"]);
  return { options, store: chooseStore(given, process.env), outer, isLast: given.command.name === "run" };
}

/** Starts COMMAND's gate, waits, lets COMMAND run. Resolves to the exit code. */
export async function runOnce(prepared: Prepared, signals: Signals): Promise<number> {
  leaveStderrAlone();
  const { command, name, foreground, killAfterMs, ttlMs } = prepared.options;
  const slackMs = Math.min(LONGEST_SLACK_MS, Math.max(SHORTEST_SLACK_MS, ttlMs * SLACK_SHARE));
  const launched = await launch(command, name, foreground);
  const guard = new Guard({ pid: launched.pid, foreground, killAfterMs, slackMs });
  try {
    return await runLocked({ ...prepared, signals, launched, guard, slackMs });
  } finally {
    launched.cancel();
    guard.dismiss();
  }
}

async function runLocked(task: Task): Promise<number> {
  const { options, store, signals, launched } = task;
  // A place that stays taken after us is on the disk before we go.
  const endsWithProcess = task.isLast && options.atLeastMs === 0;
  const locks = await openLocks(store, { guardedPid: launched.pid, endsWithProcess });
  try {
    const stopExplaining = explainWait(locks, options, store);
    const outcome = await holdWhile(locks, options, requestOptions(task), async (holding) => {
      stopExplaining();
      return await runHolding(holding, task);
    });
    if (options.verbose) say(`released ${printable(options.name)}`);
    return exitCodeOfOutcome(outcome, options);
  } catch (error) {
    if (signals.endedWait !== undefined) throw new QuietExit(EXIT.signal + signalNumber(signals.endedWait));
    if (error instanceof GateEnded) return exitCodeOfGate(error.ended);
    if (error instanceof LockLostError) throw new Failure(EXIT.lost, `${error.message}; COMMAND was stopped`);
    throw await busyOr(error, locks, options, store);
  } finally {
    await locks.close();
  }
}

async function runHolding(holding: Holding, task: Task): Promise<Outcome> {
  const { options, signals, launched, guard, slackMs } = task;
  if (options.verbose) say(`holds ${printable(options.name)}, token ${holding.token}${scopeOf(task.store)}`);
  const supervisor = new Supervisor(holding, launched, guard, { ...options, slackMs });
  if (!signals.run(launched, supervisor)) throw new Error("a signal came before COMMAND was started");
  const outcome = await supervisor.run(writeHeldNames(task.outer, holding.tokens));
  // The lock is only to be given back; whoever cannot wait for that gets COMMAND's own exit code at once.
  signals.finish(() => process.exit(exitCodeOfCommand(outcome)));
  return outcome;
}

function requestOptions({ options, signals, launched, slackMs }: Task): AcquireOptions {
  const { shared, waitMs, ttlMs, atLeastMs, killAfterMs } = options;
  const gate = new AbortController();
  void launched.ended.then((ended) => gate.abort(new GateEnded(ended)));
  return {
    mode: shared ? "shared" : "exclusive",
    waitMs,
    ttlMs,
    minHoldMs: atLeastMs,
    // Time for TERM and KILL before the lease ends. We begin before the guard would.
    graceMs: Math.min(ttlMs / 2, killAfterMs + 2 * slackMs),
    signal: AbortSignal.any([signals.waiting, gate.signal]),
  };
}

/** The process that waits to become COMMAND has ended before it could. */
class GateEnded extends Error {
  readonly ended: Ended;

  constructor(ended: Ended) {
    super("the process that was to become COMMAND ended while it waited");
    this.ended = ended;
  }
}

function exitCodeOfGate(ended: Ended): number {
  if (ended.signal === null) throw new Failure(EXIT.cannotExecute, new GateEnded(ended).message);
  return exitCodeOfCommand(ended);
}

function exitCodeOfOutcome(outcome: Outcome, { name, maxHoldMs }: RunOptions): number {
  if (outcome.guardActed) {
    const problem = "holdfast was stopped until its lease was nearly over";
    throw new Failure(EXIT.lost, `lock ${JSON.stringify(name)} was lost: ${problem}; COMMAND was stopped`);
  }
  if (!outcome.maxHoldReached) return exitCodeOfCommand(outcome);
  throw new Failure(EXIT.maxHold, `COMMAND was stopped: --max-hold ${describeMs(maxHoldMs ?? 0)} reached`);
}

/** Its own, or 128 + the number of the signal that ended it. */
function exitCodeOfCommand({ code, signal }: Ended): number {
  return signal === null ? (code ?? EXIT.failure) : EXIT.signal + signalNumber(signal);
}
