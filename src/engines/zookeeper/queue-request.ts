/**
 * Recipe 2: a queue of ephemeral sequential nodes; a waiter watches whom it waits for, and nobody else wakes. One round
 * trip to lock, one event to hand over.
 * Source: the lock recipe of Apache ZooKeeper; the waiting rule is queue.ts, the end of the counter generations.ts.
 */
import type { RequestSpec } from "../../engine/engine.ts";
import { newOwner } from "../../engine/name.ts";
import { watched } from "../../engine/queue.ts";
import { Attempt, clientData, type Ground } from "./attempt.ts";
import { hasCode, isSessionOver, isUnknown } from "./failure.ts";
import { SEALED } from "./generations.ts";
import type { HeldNode } from "./grant.ts";
import { lockPath } from "./lock-path.ts";
import type { LockSession } from "./lock-session.ts";
import { type Change, Lookout } from "./lookout.ts";
import { follows, type OnlyChild } from "./solitude.ts";
import { isValid, nodePrefix, parseNode, queueOf } from "./request-node.ts";

/** Our node, and what stood beside it when it had been created. */
interface Entry extends OnlyChild {
  /** The container. */
  readonly parent: string;
  readonly path: string;
  readonly children: readonly string[];
}

/** With so many ahead, whoever comes behind us has several ahead as well, and would have to list again when we go. */
const CROWD = 2;

export class QueueRequest extends Attempt {
  readonly #owner: string;
  readonly #prefix: string;
  readonly #data: string;
  /** Most requests never wait. */
  #lookout: Lookout | undefined;
  /** What we have created, or may have. */
  readonly #entries = new Set<string>();
  readonly #uncertain = new Set<string>();
  /** How many were ahead when we came. */
  #ahead = 0;

  constructor(ground: Ground, session: LockSession, spec: RequestSpec) {
    super(ground, session, spec);
    this.#owner = newOwner(ground.clock);
    this.#prefix = nodePrefix(this.#owner, spec);
    this.#data = clientData(spec);
  }

  protected override async run(): Promise<HeldNode | null | "again"> {
    const { name } = this.spec;
    const { generations, root } = this.ground;
    let generation = generations.of(name);
    const used: string[] = [];
    let entry = await this.#enter(lockPath(root, name, generation));
    while (!isValid(entry.sequence)) {
      await this.#seal(entry);
      used.push(entry.parent);
      entry = await this.#enter(lockPath(root, name, ++generation));
    }
    let end: "front" | "busy" | "gone" = "front";
    for (const parent of used) if (end === "front") end = await this.#drained(parent, entry);
    if (end === "front") {
      generations.drained(name, generation);
      end = await this.#reachFront(entry);
    }
    this.#lookout?.stop();
    if (end === "gone") return "again";
    if (end === "front") return this.#held(entry);
    await this.session.remove(entry.path);
    return null;
  }

  #held(entry: Entry): HeldNode {
    const { path, czxid } = entry;
    const alone = this.spec.mode === "exclusive";
    const passesOn = alone && this.#ahead >= CROWD;
    const remove = passesOn ? () => this.#passOn(path) : () => this.#leaveAlone(entry);
    return { lockName: this.spec.name, path, czxid, alone, remove };
  }

  /**
   * Removes the node of an exclusive holder, with a write to it in the same step: whoever watches it is told of the write,
   * and so knows that this was no waiter that left but the holder, and that nobody is ahead any more.
   */
  async #passOn(path: string): Promise<void> {
    const { zk } = this.session;
    try {
      await zk.multi([
        { kind: "setData", path, data: "" },
        { kind: "delete", path },
      ]);
    } catch (error) {
      if (hasCode(error, "NO_NODE") || hasCode(error, "CONNECTION_LOSS") || isSessionOver(error)) throw error;
      await zk.delete(path); // we may delete, but not write
    }
  }

  async #leaveAlone(entry: Entry): Promise<void> {
    await this.session.zk.delete(entry.path);
    if (entry.children.length === 1) this.session.solitude.left(entry.parent, entry);
  }

  protected override wake(): void {
    this.#lookout?.wake();
  }

  /** `ours`: whoever is just ahead is a request of this library; what a write to another's node means, nobody knows. */
  async #change(paths: readonly string[], own: string, ours = false): Promise<Change> {
    this.#lookout ??= new Lookout(this.session, this.ground.clock, this.ground.alarms);
    const change = await this.#lookout.change(paths, own);
    return change === "passed" && !ours ? "other" : change;
  }

  protected override leave(): void {
    this.#lookout?.stop();
    for (const path of this.#entries) void this.session.remove(path);
    for (const parent of this.#uncertain) void this.session.removal(() => this.#removeOwn(parent));
  }

  async #enter(parent: string): Promise<Entry> {
    const { zk, solitude } = this.session;
    let last = solitude.take(parent, zk.lastZxid);
    const entry = await this.inContainer(parent, () => {
      const before = last;
      last = undefined; // where the container is not there, there is nothing to follow
      return this.#create(parent, before);
    }).catch((error: unknown) => this.#lostReply(parent, error));
    this.throwIfAbandoned();
    return entry;
  }

  /**
   * Creates our node and lists its neighbours, in one write. Where `last` was alone there is probably nobody now either:
   * then it is listed only if the number that we get says that somebody came.
   */
  async #create(parent: string, last: OnlyChild | undefined): Promise<Entry> {
    const { zk } = this.session;
    const more = last === undefined;
    const options = { mode: "ephemeral-sequential", acl: this.ground.acl, more } as const;
    const creating = zk.create(`${parent}/${this.#prefix}`, this.#data, options);
    const listing = more ? zk.getChildren(parent) : undefined;
    listing?.catch(() => {}); // what is wrong with it is wrong with the other
    const { path, stat } = await creating;
    this.#entries.add(path);
    const name = path.slice(parent.length + 1);
    const own = { parent, path, sequence: sequenceOf(name), czxid: stat.czxid };
    if (last !== undefined && follows(last, own)) return { ...own, children: [name] };
    const { children } = await (listing ?? zk.getChildren(parent));
    return { ...own, children };
  }

  /** After a lost reply: our node, known by its owner; otherwise it has not been created, and is now. */
  async #lostReply(parent: string, error: unknown): Promise<Entry> {
    if (!isUnknown(error)) throw error;
    this.#uncertain.add(parent);
    const { zk } = this.session;
    // The next connection's reads come behind everything that the lost one's requests have done.
    const children = await zk.getChildren(parent).then(
      (listed) => listed.children,
      (reason: unknown): string[] => {
        // The container is made in the same write, which was lost, or it has been removed meanwhile: nothing of ours is there.
        if (hasCode(reason, "NO_NODE")) return [];
        throw reason;
      },
    );
    const [own] = await this.#own(parent, children);
    this.#uncertain.delete(parent);
    return own === undefined ? await this.#enter(parent) : { ...own, children };
  }

  /** Our nodes among `children`: they have our owner and belong to this session. */
  async #own(parent: string, children: readonly string[]): Promise<Omit<Entry, "children">[]> {
    const { zk } = this.session;
    const own: Omit<Entry, "children">[] = [];
    for (const child of children) {
      if (parseNode(child)?.owner !== this.#owner) continue;
      const path = `${parent}/${child}`;
      const stat = await zk.exists(path);
      if (stat?.ephemeralOwner !== zk.session.id) continue;
      this.#entries.add(path);
      own.push({ parent, path, sequence: sequenceOf(child), czxid: stat.czxid });
    }
    return own;
  }

  async #removeOwn(parent: string): Promise<void> {
    const { children } = await this.session.zk.getChildren(parent);
    for (const { path } of await this.#own(parent, children)) await this.session.zk.delete(path);
  }

  /**
   * The counter of the container has ended. The marker comes before our node goes and before anything is created in the
   * next generation: so the container stays, and with it its counter.
   */
  async #seal({ parent, path }: Entry): Promise<void> {
    for (let sealed = false; !sealed;) {
      try {
        await this.session.zk.create(`${parent}/${SEALED}`, "", { acl: this.ground.acl });
        sealed = true;
      } catch (error) {
        sealed = hasCode(error, "NODE_EXISTS");
        if (!sealed && !isUnknown(error)) throw error;
      }
    }
    await this.session.remove(path);
    this.#entries.delete(path);
    this.throwIfAbandoned();
  }

  /**
   * Waits until the sealed generation has no valid request. None can come any more: its counter was past its end when we
   * created there, before this listing.
   */
  async #drained(parent: string, own: Entry): Promise<"front" | "busy"> {
    for (;;) {
      const { children } = await this.session.zk.getChildren(parent);
      const last = queueOf(children).at(-1);
      if (last === undefined) return "front";
      if (!this.spec.wait) return "busy";
      await this.#change([`${parent}/${last.name}`], own.path);
      this.throwIfAbandoned();
    }
  }

  /** Waits until the rule makes us wait for nobody. */
  async #reachFront({ parent, path, children: atFirst }: Entry): Promise<"front" | "busy" | "gone"> {
    const name = path.slice(parent.length + 1);
    let children = atFirst;
    if (children.length === 1 && children[0] === name) return "front";
    for (;;) {
      const queue = queueOf(children);
      const index = queue.findIndex((node) => node.name === name);
      if (index < 0) return "gone";
      this.#ahead = Math.max(this.#ahead, index);
      const ahead = watched(queue, index).map((position) => `${parent}/${queue[position]?.name}`);
      if (ahead.length === 0) return "front";
      if (!this.spec.wait) return "busy";
      const change = await this.#change(ahead, path, queue[index - 1]?.owner !== undefined);
      this.throwIfAbandoned();
      // Nobody comes in between: behind the only one that was ahead there is nothing to look up, nor behind one that
      // had the lock alone: as it told by its last write, or because it was this session's.
      if (change !== "other" && index === 1) return "front";
      if (this.spec.mode === "exclusive") {
        if (change === "passed" || (change === "gone" && wasAlone(this.session, ahead))) return "front";
      }
      children = (await this.session.zk.getChildren(parent)).children;
      this.throwIfAbandoned();
    }
  }
}

function wasAlone({ alone }: LockSession, [ahead = ""]: readonly string[]): boolean {
  return alone.has(ahead);
}

function sequenceOf(name: string): number {
  return parseNode(name)?.sequence ?? -1;
}
