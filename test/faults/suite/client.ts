/** A client as the judge sees it: a process, or a stand-in beside others in this one. */
import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { connect } from "../../../src/index.ts";
import { historyFile, HistoryRecorder } from "../../../src/testing/history/index.ts";
import { PausableClock } from "../../../src/testing/pausable-clock.ts";
import type { Deployment } from "./deployment.ts";
import type { Birth, FromClient, ToClient } from "./messages.ts";
import { Worker, type Register, type WorkerSetting } from "./worker.ts";

export interface Client {
  /** With its incarnation: `client-2.1`. */
  readonly name: string;
  /** Ends its lanes, each after what it is at. */
  finish(): Promise<void>;
  queueUp(name: string, ahead: number): Promise<void>;
  leave(name: string): Promise<void>;
  /** Blocks its event loop; undefined where that would block everybody's. */
  readonly block?: (ms: number) => Promise<void>;
  pause(): void;
  resume(): void;
  /** Ends it without a chance to clean up. */
  kill(): Promise<void>;
  /** After the run: what is left of a killed one that was no process. */
  bury?(): Promise<void>;
  /** Closes its locks; what is left over then, and whether it ended by itself. */
  close(): Promise<readonly string[]>;
}

export interface Cradle {
  readonly deployment: Deployment;
  readonly directory: string;
  readonly register: Register;
}

export const troubleFile = (directory: string): string => join(directory, "trouble.txt");
export const historyPath = (directory: string, name: string): string => join(directory, `${name}.jsonl`);

export async function startClient(cradle: Cradle, name: string, setting: WorkerSetting): Promise<Client> {
  return cradle.deployment.spec === undefined
    ? standIn(cradle, name, setting)
    : new ClientProcess(cradle, name, setting);
}

const ENDS_WITHIN_MS = 10_000;

class ClientProcess implements Client {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #calls = new Map<number, (message: FromClient & { 0: "answer" }) => void>();
  #lastCall = 0;

  constructor({ deployment, directory, register }: Cradle, name: string, setting: WorkerSetting) {
    if (deployment.spec === undefined) throw new Error("this engine does not leave its process");
    this.name = name;
    const birth: Birth = {
      name,
      historyPath: historyPath(directory, name),
      troublePath: troubleFile(directory),
      spec: deployment.spec,
      setting,
    };
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    this.#child = fork(join(import.meta.dirname, "client-program.ts"), [JSON.stringify(birth)], {
      serialization: "advanced",
      env,
    });
    process.on("exit", this.#killNow);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", (code) => {
        process.off("exit", this.#killNow);
        for (const [id, settle] of this.#calls) settle(["answer", id, undefined, `${name} is gone`]);
        resolve(code);
      });
    });
    this.#child.on("error", () => {}); // a command to a dead client: it rejects through "exit"
    this.#child.on("message", (message: FromClient) => {
      if (message[0] === "answer") this.#calls.get(message[1])?.(message);
      else {
        const [, id, resource, token, write] = message;
        void register(resource, token, write).then((taken) => this.#send(["wrote", id, taken]));
      }
    });
  }

  readonly #killNow = (): void => void this.#child.kill("SIGKILL"); // a stopped one would never notice that we are gone

  readonly block = async (ms: number): Promise<void> => void (await this.#call("block", ms));

  async finish(): Promise<void> {
    await this.#call("finish");
  }

  async queueUp(name: string, ahead: number): Promise<void> {
    await this.#call("queueUp", name, ahead);
  }

  async leave(name: string): Promise<void> {
    await this.#call("leave", name);
  }

  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  async close(): Promise<readonly string[]> {
    const left = (await this.#call("close")) as readonly string[];
    if (this.#child.connected) this.#child.disconnect();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), ENDS_WITHIN_MS);
    const code = await this.#exited;
    clearTimeout(late);
    return code === 0 ? left : [...left, code === null ? "something that kept it alive" : `the exit code ${code}`];
  }

  #call(method: string, ...parameters: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastCall;
      this.#calls.set(id, ([, , result, error]) => {
        this.#calls.delete(id);
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      });
      this.#send(["call", id, method, ...parameters]);
    });
  }

  #send(message: ToClient): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}

/** Its timers stop as those of a stopped process do; its answers wait in the faulty store. */
async function standIn(
  { deployment, directory, register }: Cradle,
  name: string,
  setting: WorkerSetting,
): Promise<Client> {
  if (deployment.open === undefined) throw new Error("the deployment says neither how to connect nor how to open");
  const clock = new PausableClock();
  const file = historyFile(historyPath(directory, name));
  let dead = false;
  const recorder = new HistoryRecorder(name, {
    write: (event) => dead || file.write(event),
    close: () => file.close(),
  });
  const locks = await connect(deployment.open(clock));
  const worker = new Worker(locks, clock, recorder, register, setting);
  worker.start();
  return {
    name,
    finish: () => worker.finish(),
    queueUp: (lock, ahead) => worker.queueUp(lock, ahead),
    leave: (lock) => worker.leave(lock),
    pause: () => clock.pause(),
    resume: () => clock.resume(),
    kill: async () => {
      dead = true;
      clock.pause();
    },
    async bury() {
      const over = worker.finish();
      clock.resume();
      await locks.close();
      await over;
    },
    async close() {
      await locks.close();
      recorder.close();
      return worker.surprises.map((surprise) => `an unexpected error: ${surprise}`);
    },
  };
}
