/**
 * Recipe 1: all race to create one ephemeral node; those that lose watch it, all of them wake and race again. No order,
 * exclusive only. Kept for few waiters and for comparison: its herd is measured in the documentation.
 *
 * The winner creates a second node in the same step, named after its owner, and both go in one step: so a late release
 * removes its own lock or nothing, never the next holder's.
 */
import type { RequestSpec } from "../../engine/engine.ts";
import { newOwner } from "../../engine/name.ts";
import type { NodeData, TransactionRequest } from "../../zookeeper/index.ts";
import { Attempt, clientData, type Ground } from "./attempt.ts";
import { hasCode, isUnknown } from "./failure.ts";
import type { HeldNode } from "./grant.ts";
import { lockPath } from "./lock-path.ts";
import type { LockSession } from "./lock-session.ts";
import { Lookout } from "./lookout.ts";

/** The node that is raced for. Its data is the winner's owner, a space, and who it is. */
export const HELD = "held";
const WAITING = /^[\w-]{22}-waiting$/;

export function isWaiting(child: string): boolean {
  return WAITING.test(child);
}

/** The owner in the data of the node that is raced for, and what it tells of its client. */
export function heldData(data: Buffer): { owner: string; client: string } {
  const text = data.toString();
  const space = text.indexOf(" ");
  return { owner: text.slice(0, Math.max(space, 0)), client: text.slice(space + 1) };
}

/** Ends the hold of `owner`, and no other. */
export function releaseOf(parent: string, owner: string): TransactionRequest[] {
  return [
    { kind: "delete", path: `${parent}/${owner}-held` },
    { kind: "delete", path: `${parent}/${HELD}` },
  ];
}

export class RaceRequest extends Attempt {
  readonly #owner: string;
  readonly #parent: string;
  readonly #held: string;
  /** Tells others that we wait; for `query()` only. */
  readonly #waiting: string;
  readonly #lookout: Lookout;
  #announced = false;

  constructor(ground: Ground, session: LockSession, spec: RequestSpec) {
    super(ground, session, spec);
    this.#owner = newOwner(ground.clock);
    this.#parent = lockPath(ground.root, spec.name);
    this.#held = `${this.#parent}/${HELD}`;
    this.#waiting = `${this.#parent}/${this.#owner}-waiting`;
    this.#lookout = new Lookout(session, ground.clock, ground.alarms);
  }

  protected override async run(): Promise<HeldNode | null | "again"> {
    for (;;) {
      const seen = await this.inContainer(this.#parent, () => this.#race());
      this.throwIfAbandoned();
      if (seen !== undefined && this.#isOurs(seen)) return this.#won(seen);
      if (!this.spec.wait) {
        if (seen === undefined) continue; // it went between the race and the look
        return null;
      }
      await this.#announce();
      await this.#lookout.change([this.#held], this.#waiting);
      this.throwIfAbandoned();
    }
  }

  protected override wake(): void {
    this.#lookout.wake();
  }

  protected override leave(): void {
    this.#lookout.stop();
    void this.session.removal(() => this.session.zk.multi(releaseOf(this.#parent, this.#owner)));
    if (this.#announced) void this.session.remove(this.#waiting);
  }

  /** Tries to create the node and looks at it, in one write. Undefined when nobody holds it. */
  async #race(): Promise<NodeData | undefined> {
    const { zk } = this.session;
    const { acl } = this.ground;
    const data = `${this.#owner} ${clientData(this.spec)}`;
    const parts: readonly TransactionRequest[] = [
      { kind: "create", path: this.#held, data, mode: "ephemeral", acl },
      { kind: "create", path: `${this.#parent}/${this.#owner}-held`, mode: "ephemeral", acl },
      ...(this.#announced ? [{ kind: "delete", path: this.#waiting } as const] : []),
    ];
    const winning = zk.multi(parts, { more: true });
    const looking = zk.getData(this.#held);
    looking.catch(() => {}); // asked for below
    try {
      await winning;
      this.#announced = false;
    } catch (error) {
      // Taken by another, or by us: the reply to an earlier try was lost.
      if (!hasCode(error, "NODE_EXISTS") && !isUnknown(error)) {
        if (this.#announced) this.#announced = (await zk.exists(this.#waiting)) !== null;
        throw error;
      }
    }
    return await looking.catch((error: unknown) => {
      if (hasCode(error, "NO_NODE")) return undefined;
      throw error;
    });
  }

  #isOurs({ data, stat }: NodeData): boolean {
    return heldData(data).owner === this.#owner && stat.ephemeralOwner === this.session.zk.session.id;
  }

  async #won({ stat }: NodeData): Promise<HeldNode> {
    this.#lookout.stop();
    const remove = (): Promise<unknown> => this.session.zk.multi(releaseOf(this.#parent, this.#owner));
    return { lockName: this.spec.name, path: this.#held, czxid: stat.czxid, alone: false, remove };
  }

  async #announce(): Promise<void> {
    if (this.#announced) return;
    const { acl } = this.ground;
    try {
      await this.session.zk.create(this.#waiting, clientData(this.spec), { mode: "ephemeral", acl });
      this.#announced = true;
    } catch (error) {
      this.#announced = hasCode(error, "NODE_EXISTS") || isUnknown(error);
      if (!this.#announced && !hasCode(error, "NO_NODE")) throw error;
    }
    this.throwIfAbandoned();
  }
}
