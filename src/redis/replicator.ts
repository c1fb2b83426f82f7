/**
 * Writes that count only once enough replicas have them. WAIT tells how many replicas have the writes of its *own*
 * connection (on a fresh one it proves nothing), so writes and WAIT go down one connection of ours, in order. While a
 * WAIT is under way, further writes gather; they go out together and share the next one.
 */
import type { Command, Connection } from "./connection.ts";
import { RedisOutcomeUnknownError, RedisReplyError, translate } from "./errors.ts";
import type { InFlight } from "./in-flight.ts";
import type { Link } from "./link.ts";
import type { Script } from "./script.ts";

export interface Replicated {
  readonly reply: unknown;
  /** How many replicas have confirmed it. */
  readonly replicas: number;
}

export interface ReplicatorOptions {
  /** To one master; closed with the replicator. */
  readonly link: Link;
  readonly inFlight: InFlight;
  readonly commandTimeoutMs: number;
  readonly secrets: readonly string[];
}

interface Wait {
  readonly replicas: number;
  readonly waitMs: number;
}

interface Write {
  readonly script: Script;
  readonly command: Command;
  readonly wait: Wait;
  readonly resolve: (result: Replicated) => void;
  readonly reject: (error: Error) => void;
}

export class Replicator {
  readonly #options: ReplicatorOptions;
  #gathering: Write[] = [];
  #busy = false;

  constructor(options: ReplicatorOptions) {
    this.#options = options;
  }

  /** `command` is the EVALSHA of `script`. Rejects as the script does; the number of replicas is the caller's to judge. */
  run(script: Script, command: Command, wait: Wait): Promise<Replicated> {
    return new Promise((resolve, reject) => {
      this.#gathering.push({ script, command, wait, resolve, reject });
      if (!this.#busy) void this.#work();
    });
  }

  close(): void {
    this.#options.link.close();
    for (const write of this.#gathering.splice(0))
      write.reject(new RedisOutcomeUnknownError("the connection is closed"));
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#gathering.length > 0) {
      const batch = this.#gathering.splice(0);
      try {
        await this.#carryOut(batch);
      } catch (error) {
        const translated = translate(error, this.#options.secrets);
        for (const write of batch) write.reject(translated);
      }
    }
    this.#busy = false;
  }

  async #carryOut(batch: readonly Write[]): Promise<void> {
    const { link, commandTimeoutMs } = this.#options;
    const connection = await link.open();
    const replicas = Math.max(...batch.map(({ wait }) => wait.replicas));
    const waitMs = Math.max(...batch.map(({ wait }) => wait.waitMs));
    let late: RedisOutcomeUnknownError | undefined;
    const waiting = this.#options.inFlight.add(commandTimeoutMs + waitMs, () => {
      late = new RedisOutcomeUnknownError(`Redis did not answer within ${commandTimeoutMs + waitMs} ms`);
      link.drop(connection, late); // which rejects what was sent on it
    });
    connection.keepAlive(true);
    try {
      const replies = batch.map((write) => this.#write(connection, write));
      let counted = await countReplicas(connection, replicas, waitMs);
      const results = await Promise.all(replies);
      // A script that was unknown went out after that WAIT: it needs one of its own.
      if (results.some(({ resent }) => resent)) counted = await countReplicas(connection, replicas, waitMs);
      batch.forEach((write, n) => settle(write, results[n]?.result ?? new Error("no reply"), counted));
    } catch (error) {
      throw late ?? error;
    } finally {
      this.#options.inFlight.remove(waiting);
      connection.keepAlive(false);
    }
  }

  /** Never rejects: an error is a result, so that one write does not spoil the others. */
  async #write(connection: Connection, { script, command }: Write): Promise<{ result: unknown; resent: boolean }> {
    try {
      return { result: { reply: await connection.send(command) }, resent: false };
    } catch (error) {
      const translated = translate(error, this.#options.secrets);
      if (!(translated instanceof RedisReplyError) || translated.code !== "NOSCRIPT") {
        return { result: translated, resent: false };
      }
      const [, , ...rest] = command;
      const again = await connection.send(["eval", script.source, ...rest]).then(
        (reply) => ({ reply }),
        (failure: unknown) => translate(failure, this.#options.secrets),
      );
      return { result: again, resent: true };
    }
  }
}

/** Covers what was sent on the connection before. */
async function countReplicas(connection: Connection, replicas: number, waitMs: number): Promise<number> {
  return Number(await connection.send(["wait", String(replicas), String(Math.ceil(waitMs))]));
}

function settle(write: Write, result: unknown, replicas: number): void {
  if (result instanceof Error) write.reject(result);
  else write.resolve({ reply: (result as { reply: unknown }).reply, replicas });
}
