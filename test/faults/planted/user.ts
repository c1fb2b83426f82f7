/** Somebody who uses a lock, right or wrong, and a thing that the lock protects; everything is recorded. */
import { setTimeout as sleep } from "node:timers/promises";
import { memoryFence, StaleTokenError } from "../../../src/fence/index.ts";
import type { HistoryEvent } from "../../../src/testing/history/event.ts";
import {
  historyArray,
  HistoryRecorder,
  type RecordedGrant,
  type RecordedRequest,
} from "../../../src/testing/history/index.ts";
import type { PlantedLock } from "./lock.ts";

const THING = "thing";
/** Long enough for a person to see it in a picture. */
const STAY_MS = 20;

/** The history of one scene, and the thing. */
export class Scene {
  readonly events: HistoryEvent[] = [];
  readonly #judge = this.recorder("judge");
  readonly #fence = memoryFence({ name: THING });
  readonly #written: string[] = [];

  recorder(process: string): HistoryRecorder {
    return new HistoryRecorder(process, historyArray(this.events));
  }

  killed(victim: string): void {
    this.#judge.tell({ kind: "killed", victim });
  }

  /** Writers with a token are checked; of the others the thing cannot tell one from another. */
  write(write: string, token: bigint | undefined): boolean {
    try {
      if (token !== undefined) this.#fence.enter(token);
    } catch (error) {
      if (error instanceof StaleTokenError) return false;
      throw error;
    }
    this.#written.push(write);
    return true;
  }

  end(): HistoryEvent[] {
    for (const write of this.#written) this.#judge.tell({ kind: "applied", resource: THING, write });
    this.#judge.tell({ kind: "ended" });
    return this.events;
  }
}

export class User {
  readonly #scene: Scene;
  readonly #name: string;
  readonly #lock: PlantedLock;
  readonly #recorder: HistoryRecorder;
  #request: RecordedRequest | undefined;
  #grant: RecordedGrant | undefined;
  #inside = Promise.withResolvers<boolean>();
  #dead = false;
  #left = false;

  constructor(scene: Scene, name: string, lock: PlantedLock) {
    this.#scene = scene;
    this.#name = name;
    this.#lock = lock;
    this.#recorder = scene.recorder(name);
  }

  /** Begins to wait for the lock. */
  ask(): this {
    const request = (this.#request = this.#recorder.request({ name: "lock" }));
    this.#lock.acquire().then(
      (grant) => {
        if (this.#dead) return;
        request.granted(grant);
        this.#grant = grant;
        this.#inside.resolve(true);
      },
      (error: unknown) => {
        if (this.#dead) return;
        request.refused(String(error));
        this.#inside.resolve(false);
      },
    );
    return this;
  }

  /** Whether it is inside, at the latest after `ms`. */
  inside(ms: number): Promise<boolean> {
    return Promise.race([this.#inside.promise, sleep(ms, false)]);
  }

  write(): void {
    const writing = this.#request?.writing(THING);
    if (writing !== undefined) writing.done(this.#scene.write(writing.write, this.#grant?.token));
  }

  /** Nothing happens unless it is inside. */
  async leave(): Promise<void> {
    if (this.#left || this.#dead || !(await this.inside(0))) return;
    this.#left = true;
    await sleep(STAY_MS);
    this.#request?.releasing();
    await this.#lock.release();
    this.#request?.released();
  }

  /** Resolves when it wants nothing any more, at the latest after `ms`. */
  async finish(ms: number): Promise<void> {
    if (this.#request === undefined || this.#dead) return;
    await this.inside(ms);
    await this.leave();
  }

  die(): void {
    this.#dead = true;
    this.#scene.killed(this.#name);
    this.#lock.die();
  }

  async close(): Promise<void> {
    await this.#lock.close();
  }
}
