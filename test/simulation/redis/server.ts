/** Simulated Redis servers: the product's own scripts run in a Lua interpreter, on keys that live in it. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { LuaFactory } from "wasmoon";
import { SimulatedProcess, type World } from "../../../src/testing/simulation/world.ts";

const SEPARATOR = "\x1f";
const RUN_ID_BYTES = 20;

interface Reply {
  readonly reply?: unknown;
  readonly error?: string;
  readonly bells: readonly (readonly [channel: string, message: string])[];
}

interface Interpreter {
  command(server: number, micros: number, text: string): string;
  forget(server: number): void;
}

/** One interpreter for all: making one takes longer than a whole world. */
const interpreter: Interpreter = await createInterpreter();
let servers = 0;

async function createInterpreter(): Promise<Interpreter> {
  const lua = await new LuaFactory().createEngine();
  lua.global.set("sha_of", (text: string) => createHash("sha1").update(text).digest("hex"));
  await lua.doString(readFileSync(new URL("server.lua", import.meta.url), "utf8"));
  return {
    command: lua.global.get("command") as Interpreter["command"],
    forget: lua.global.get("forget") as Interpreter["forget"],
  };
}

/** Who listens to a channel on a server. */
export interface Listener {
  readonly channel: string;
  readonly ring: (message: string) => void;
}

export class SimulatedRedis {
  readonly process: SimulatedProcess;
  readonly #listeners = new Set<Listener>();
  readonly #onRestart = new Set<() => void>();
  #id = servers++;
  #run: string;

  constructor(world: World, name: string, drift: number) {
    this.process = new SimulatedProcess(world, name, drift);
    this.#run = this.#newRun();
  }

  /** Carries out a command, now. Throws what Redis answers with an error. */
  command(words: readonly string[]): unknown {
    const [verb = ""] = words;
    if (verb === "info") return this.#info();
    const { reply, error, bells } = this.#evaluate(words);
    for (const [channel, message] of bells) {
      for (const listener of this.#listeners) if (listener.channel === channel) listener.ring(message);
    }
    if (error !== undefined) throw new Error(error);
    return reply;
  }

  listen(listener: Listener): void {
    this.#listeners.add(listener);
    this.#evaluate(["listen", listener.channel]);
  }

  unlisten(listener: Listener): void {
    if (this.#listeners.delete(listener)) this.#evaluate(["unlisten", listener.channel]);
  }

  /** Everything is forgotten, all connections break, and the server is another incarnation. */
  restartEmpty(): void {
    interpreter.forget(this.#id);
    this.#run = this.#newRun();
    this.#listeners.clear();
    const broken = [...this.#onRestart];
    this.#onRestart.clear();
    for (const each of broken) each();
  }

  /** Called once, at the next restart. Returns what takes it away. */
  whenRestarted(listener: () => void): () => void {
    this.#onRestart.add(listener);
    return () => void this.#onRestart.delete(listener);
  }

  get run(): string {
    return this.#run;
  }

  /** Whether `key` has `field` = the present incarnation: the redlock node is admitted. */
  isRun(key: string, field: string): boolean {
    return this.#evaluate(["hget", key, field]).reply === this.#run;
  }

  #evaluate(words: readonly string[]): Reply {
    const micros = this.process.wallMs() * 1_000;
    return JSON.parse(interpreter.command(this.#id, micros, words.join(SEPARATOR))) as Reply;
  }

  #info(): string {
    const lines = [
      "redis_version:7.4.0",
      `run_id:${this.#run}`,
      "role:master",
      "maxmemory_policy:noeviction",
      "maxmemory:0",
    ];
    return lines.join("\r\n");
  }

  #newRun(): string {
    return Buffer.from(this.process.randomBytes(RUN_ID_BYTES)).toString("hex");
  }
}
