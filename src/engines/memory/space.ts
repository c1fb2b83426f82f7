/** The queues of one memory space: the rule of `engine/queue.ts` on a Map. The reference for the kit and the simulation. */
import type { LossReason } from "../../engine/errors.ts";
import type { Answer, Ask, StoreEvents } from "../../engine/lease-store.ts";
import { heldPrefix, type Wish } from "../../engine/queue.ts";

export interface MemoryRequest extends Wish {
  readonly ask: Ask;
  /** Where its bell hangs; undefined for a place that is kept by `minHoldMs` alone. */
  events: StoreEvents | undefined;
  /** Lease end, monotonic ms. */
  expiresAtMs: number;
  /** Until when the place stays taken whatever happens to its owner, monotonic ms. */
  holdUntilMs: number;
  sinceMs: number;
  token: bigint | undefined;
}

interface NameQueue {
  readonly requests: MemoryRequest[];
  held: number;
  /** How many places are kept by `minHoldMs` alone. */
  ownerless: number;
  /** No lease of the queue ends before this instant, so nothing need be looked at until then. */
  earliestEndMs: number;
}

/** What became of requests that did not end by themselves; kept until their lease would have ended. */
interface Ending {
  readonly reason: LossReason;
  readonly untilMs: number;
}

const ENDINGS_BEFORE_SWEEP = 1_000;
const MICROS_PER_MS = 1_000;

export interface Moment {
  readonly monoMs: number;
  readonly wallMs: number;
}

export class MemorySpace {
  readonly #queues = new Map<string, NameQueue>();
  /** The requests that have an owner, by it. */
  readonly #owned = new Map<string, MemoryRequest>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #endings = new Map<string, Ending>();
  #lastToken = 0n;

  request(ask: Ask, events: StoreEvents, now: Moment): Answer {
    const queue = this.#queueFor(ask.name, now);
    const present = this.#owned.get(ask.owner);
    if (present !== undefined) return this.#renewed(queue, present, ask.ttlMs, ask.pendingTtlMs, now);
    if (ask.steal) this.#endHeld(queue, "stolen", now);
    const request: MemoryRequest = {
      mode: ask.mode,
      limit: ask.limit,
      ask,
      events,
      expiresAtMs: now.monoMs + ask.pendingTtlMs,
      holdUntilMs: -Infinity,
      sinceMs: now.wallMs,
      token: undefined,
    };
    if (ask.steal) queue.requests.unshift(request);
    else queue.requests.push(request);
    const index = ask.steal ? 0 : queue.requests.length - 1;
    const prefix = heldPrefix(queue.requests, queue.held);
    if (!ask.wait && index >= prefix) {
      queue.requests.splice(index, 1);
      this.#forgetIfEmpty(ask.name, queue);
      return { state: "busy" };
    }
    this.#owned.set(ask.owner, request);
    this.#grant(queue, prefix, now, request);
    return this.#renewed(queue, request, ask.ttlMs, ask.pendingTtlMs, now);
  }

  renew(name: string, owner: string, ttlMs: number, pendingTtlMs: number, now: Moment): Answer {
    const queue = this.#queues.get(name);
    if (queue !== undefined) {
      this.#dropExpired(name, queue, now);
      const request = this.#owned.get(owner);
      if (request !== undefined) return this.#renewed(queue, request, ttlMs, pendingTtlMs, now);
    }
    return { state: "gone", reason: this.#endings.get(owner)?.reason ?? "expired" };
  }

  /** The owner leaves; `keepHold` says whether its minimum hold still counts. */
  leave(name: string, owner: string, keepHold: boolean, now: Moment): void {
    const queue = this.#queues.get(name);
    if (queue === undefined) return;
    const request = this.#owned.get(owner);
    if (request !== undefined) {
      if (keepHold && request.holdUntilMs > now.monoMs) this.#disown(queue, request);
      else this.#remove(queue, queue.requests.indexOf(request));
    }
    this.#dropExpired(name, queue, now);
  }

  evict(name: string, token: bigint, now: Moment): boolean {
    const queue = this.#queueFor(name, now);
    const index = queue.requests.findIndex((each, at) => at < queue.held && each.token === token);
    const victim = queue.requests[index];
    if (victim !== undefined) {
      this.#remember(victim, "evicted", now);
      this.#remove(queue, index);
    }
    this.#advance(queue, now);
    this.#forgetIfEmpty(name, queue);
    victim?.events?.check(victim.ask.owner);
    return victim !== undefined;
  }

  /** The queue of `name` in order, after dropping what has expired. */
  list(name: string, now: Moment): readonly MemoryRequest[] {
    const queue = this.#queues.get(name);
    if (queue === undefined) return [];
    this.#dropExpired(name, queue, now);
    return queue.requests;
  }

  names(): string[] {
    return [...this.#queues.keys()];
  }

  /** Calls `changed` when somebody begins or ceases to hold `name`. */
  watch(name: string, changed: () => void): () => void {
    const watchers = this.#watchers.get(name) ?? new Set();
    this.#watchers.set(name, watchers.add(changed));
    return () => {
      watchers.delete(changed);
      if (watchers.size === 0 && this.#watchers.get(name) === watchers) this.#watchers.delete(name);
    };
  }

  #tellWatchers(name: string): void {
    for (const changed of this.#watchers.get(name) ?? []) changed();
  }

  #queueFor(name: string, now: Moment): NameQueue {
    const queue = this.#queues.get(name);
    if (queue !== undefined) {
      this.#dropExpired(name, queue, now);
      // Dropping may have emptied and forgotten it.
      if (this.#queues.has(name)) return queue;
    }
    const fresh: NameQueue = { requests: [], held: 0, ownerless: 0, earliestEndMs: Infinity };
    this.#queues.set(name, fresh);
    return fresh;
  }

  #renewed(queue: NameQueue, request: MemoryRequest, ttlMs: number, pendingTtlMs: number, now: Moment): Answer {
    const ttl = request.token === undefined ? pendingTtlMs : ttlMs;
    request.expiresAtMs = Math.max(request.expiresAtMs, now.monoMs + ttl);
    queue.earliestEndMs = Math.min(queue.earliestEndMs, request.expiresAtMs);
    if (request.token !== undefined) return { state: "held", token: request.token, ttlMs: ttl };
    return { state: "pending", ttlMs: ttl, recheckMs: Math.max(0, queue.earliestEndMs - now.monoMs) };
  }

  /** Removes what has expired; an expired owner's minimum hold keeps the place. Then lets the next ones in. */
  #dropExpired(name: string, queue: NameQueue, now: Moment): void {
    if (now.monoMs >= queue.earliestEndMs) {
      for (let index = queue.requests.length - 1; index >= 0; index--) {
        const request = queue.requests[index];
        if (request === undefined || request.expiresAtMs > now.monoMs) continue;
        if (request.holdUntilMs > now.monoMs) this.#disown(queue, request);
        else this.#remove(queue, index);
      }
      queue.earliestEndMs = queue.requests.reduce((least, each) => Math.min(least, each.expiresAtMs), Infinity);
    }
    this.#advance(queue, now);
    this.#forgetIfEmpty(name, queue);
  }

  #remove(queue: NameQueue, index: number): void {
    for (const request of queue.requests.splice(index, 1)) {
      if (request.events === undefined) queue.ownerless--;
      else this.#owned.delete(request.ask.owner);
      this.#tellWatchers(request.ask.name);
    }
    if (index < queue.held) queue.held--;
  }

  /** The owner goes, its minimum hold stays in its place. */
  #disown(queue: NameQueue, request: MemoryRequest): void {
    this.#owned.delete(request.ask.owner);
    request.events = undefined;
    request.expiresAtMs = request.holdUntilMs;
    queue.earliestEndMs = Math.min(queue.earliestEndMs, request.holdUntilMs);
    queue.ownerless++;
    this.#tellHead(queue);
  }

  #advance(queue: NameQueue, now: Moment): void {
    if (queue.held === queue.requests.length) return;
    this.#grant(queue, heldPrefix(queue.requests, queue.held), now, undefined);
  }

  /** Grants the requests up to `prefix` and rings all but `asking`, whose answer is the bell. */
  #grant(queue: NameQueue, prefix: number, now: Moment, asking: MemoryRequest | undefined): void {
    if (queue.held >= prefix) return;
    for (; queue.held < prefix; queue.held++) {
      const request = queue.requests[queue.held];
      if (request === undefined) return;
      request.token = this.#nextToken(now);
      request.sinceMs = now.wallMs;
      request.holdUntilMs = now.monoMs + request.ask.minHoldMs;
      this.#tellWatchers(request.ask.name);
      if (request !== asking) request.events?.granted(request.ask.owner, request.token);
    }
    this.#tellHead(queue);
  }

  /** Tokens grow as a counter and never fall behind the wall clock, so they grow even when a name was forgotten. */
  #nextToken(now: Moment): bigint {
    const clockToken = BigInt(Math.floor(now.wallMs * MICROS_PER_MS));
    this.#lastToken = clockToken > this.#lastToken ? clockToken : this.#lastToken + 1n;
    return this.#lastToken;
  }

  /** No bell will ring when an ownerless place ends: the first who waits for it learns from its answer when that is. */
  #tellHead(queue: NameQueue): void {
    const head = queue.ownerless > 0 ? queue.requests[queue.held] : undefined;
    head?.events?.check(head.ask.owner);
  }

  #endHeld(queue: NameQueue, reason: LossReason, now: Moment): void {
    const victims = queue.requests.splice(0, queue.held);
    queue.held = 0;
    queue.ownerless = 0;
    for (const victim of victims) {
      if (victim.events !== undefined) this.#owned.delete(victim.ask.owner);
      this.#remember(victim, reason, now);
      this.#tellWatchers(victim.ask.name);
      victim.events?.check(victim.ask.owner);
    }
  }

  #remember(victim: MemoryRequest, reason: LossReason, now: Moment): void {
    if (this.#endings.size >= ENDINGS_BEFORE_SWEEP) {
      for (const [owner, ending] of this.#endings) if (ending.untilMs <= now.monoMs) this.#endings.delete(owner);
    }
    this.#endings.set(victim.ask.owner, { reason, untilMs: victim.expiresAtMs });
  }

  #forgetIfEmpty(name: string, queue: NameQueue): void {
    if (queue.requests.length === 0) this.#queues.delete(name);
  }
}
