/** A lock that a node of ours holds. */
import type { Alarm, Alarms } from "../../engine/alarms.ts";
import type { Clock } from "../../engine/clock.ts";
import type { Grant, Lease } from "../../engine/engine.ts";
import { lossError, type LossReason } from "../../engine/errors.ts";
import { deadlineMs } from "../../engine/lease.ts";
import type { WatchEvent } from "../../zookeeper/index.ts";
import { failureOf, hasCode, isSessionOver } from "./failure.ts";
import type { LockSession } from "./lock-session.ts";

/** A lock that is held for less needs no watch on its node: nobody evicts so fast, and most locks never pay for it. */
const WATCH_AFTER_MS = 50;
const WATCH_AGAIN_MS = 1_000;

export interface GrantGround {
  readonly clock: Clock;
  readonly alarms: Alarms;
}

export interface HeldNode {
  readonly lockName: string;
  /** Gone means lost. */
  readonly path: string;
  /** The transaction that created the node. */
  readonly czxid: bigint;
  /** Nobody was ahead of it in its queue when it was granted, and so nobody will be: it is exclusive. */
  readonly alone: boolean;
  /** Removes it, and no other; fails with NO_NODE when it is gone. */
  remove(): Promise<unknown>;
}

export class NodeGrant implements Grant {
  readonly token: bigint;
  readonly #ground: GrantGround;
  readonly #session: LockSession;
  readonly #node: HeldNode;
  readonly #stopListening: () => void;
  #watching: Alarm | undefined;
  #listener: ((reason: LossReason) => void) | undefined;
  #loss: LossReason | undefined;
  #released: Promise<void> | undefined;

  constructor(ground: GrantGround, session: LockSession, node: HeldNode) {
    this.#ground = ground;
    this.token = node.czxid;
    this.#session = session;
    this.#node = node;
    if (node.alone) session.alone.add(node.path);
    this.#stopListening = session.whenOver(() => this.#lose("session"));
    this.#watchIn(WATCH_AFTER_MS);
    if (session.over) this.#lose("session");
  }

  lease(): Lease {
    return this.#session.lease();
  }

  /** One round trip: the node is there and the session alive. */
  async renew(): Promise<void> {
    if (this.#loss === undefined) {
      try {
        if ((await this.#session.zk.exists(this.#node.path))?.czxid !== this.token) this.#lose("evicted");
      } catch (error) {
        if (!isSessionOver(error)) throw failureOf(error);
        this.#lose("session");
      }
    }
    if (this.#loss !== undefined) throw lossError(this.#node.lockName, this.#loss);
  }

  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  discard(): Promise<void> {
    return this.release();
  }

  onLoss(listener: (reason: LossReason) => void): void {
    this.#listener = listener;
    if (this.#loss !== undefined) listener(this.#loss);
  }

  /** Resolves when the node is gone or the lease is over; in the latter case the removal goes on behind it. */
  #release(): Promise<void> {
    if (this.#loss === "session") return Promise.resolve();
    return new Promise((resolve) => {
      // The request first: the rest is done while the server works.
      const removed = this.#session.removal(() => this.#node.remove());
      this.#stop();
      const end = this.#ground.alarms.set(deadlineMs(this.lease()), resolve);
      void removed.then(() => {
        this.#session.alone.delete(this.#node.path);
        end.cancel();
        resolve();
      });
    });
  }

  /** Of a node that is not there no watch is set: then it is lost already. */
  #watch(): void {
    if (this.#loss !== undefined || this.#released !== undefined) return;
    const { zk } = this.#session;
    const watch = ({ type }: WatchEvent): void => {
      if (type === "deleted") this.#lose("evicted");
      else if (type !== "lost") this.#watch();
    };
    zk.getData(this.#node.path, { watch }).then(
      ({ stat }) => {
        if (stat.czxid !== this.token) this.#lose("evicted");
      },
      (error: unknown) => {
        if (hasCode(error, "NO_NODE")) this.#lose("evicted");
        else if (!isSessionOver(error)) this.#watchIn(WATCH_AGAIN_MS);
      },
    );
  }

  #watchIn(delayMs: number): void {
    const { clock, alarms } = this.#ground;
    this.#watching = alarms.set(clock.monotonicMs() + delayMs, () => this.#watch());
  }

  #lose(reason: LossReason): void {
    if (this.#loss !== undefined || this.#released !== undefined) return;
    this.#loss = reason;
    this.#session.alone.delete(this.#node.path);
    this.#stop();
    this.#listener?.(reason);
  }

  #stop(): void {
    this.#watching?.cancel();
    this.#stopListening();
  }
}
