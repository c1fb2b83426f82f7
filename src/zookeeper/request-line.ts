/**
 * The requests of a session in their order: first those that were sent and wait for an answer, then those that wait to be
 * sent. Replies come in the order of the requests, so the first one is always the next to be answered. No I/O.
 */
import type { Instant } from "../engine/clock.ts";
import { ConnectionLossError, ProtocolError, serverError, ZooKeeperError } from "./errors.ts";
import { bodyBytes, type ReplyHeader, requestPacket, setXid } from "./frames.ts";
import type { JuteReader } from "./jute.ts";
import type { Operation } from "./operations.ts";
import { LAST_XID } from "./protocol.ts";

/** How often a request that only reads is sent again after a lost connection before it fails too. */
const MOST_SENDS = 4;
/** How many answered requests may stand at the front of the array before it is cut. */
const SLACK = 1024;

interface Entry {
  readonly operation: Operation<unknown>;
  readonly bytes: Buffer;
  readonly addedMs: number;
  xid: number;
  sends: number;
  sentAt: Instant | undefined;
  /** Undefined once the caller has its answer (by abort): the reply still takes its turn. */
  promise: { resolve(value: unknown): void; reject(error: unknown): void } | undefined;
  stopListening: (() => void) | undefined;
}

export interface LineOptions {
  readonly maxPacketBytes: number;
  readonly maxRequests: number;
  /** How a path of the server looks to the caller. */
  readonly showPath: (path: string) => string;
  /** Called when the last caller has its answer. */
  readonly onIdle: () => void;
}

export class RequestLine {
  readonly #options: LineOptions;
  #entries: (Entry | undefined)[] = [];
  #head = 0;
  #sent = 0;
  /** Callers that wait for an answer. */
  #callers = 0;
  #nextXid = 1;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** Requests that were sent and are not answered. */
  get unanswered(): number {
    return this.#sent;
  }

  /** Requests that have not been sent. */
  get waiting(): number {
    return this.#entries.length - this.#head - this.#sent;
  }

  /** Nobody waits for an answer. */
  get idle(): boolean {
    return this.#callers === 0;
  }

  /** When the oldest unanswered request was sent. */
  get oldestSentAt(): Instant | undefined {
    return this.#sent === 0 ? undefined : this.#entries[this.#head]?.sentAt;
  }

  /**
   * Adds a request at the end. Rejects at once when it is too large, there are too many, or `signal` has aborted.
   * `nowMs`: for `failWaiting`.
   */
  add<T>(operation: Operation<T>, nowMs: number, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted();
      const bytes = requestPacket(operation.opCode, 0, (writer) => operation.encode(writer));
      this.#checkLimits(operation, bytes);
      const entry: Entry = {
        operation,
        bytes,
        addedMs: nowMs,
        xid: 0,
        sends: 0,
        sentAt: undefined,
        promise: { resolve, reject },
        stopListening: undefined,
      };
      if (signal !== undefined) this.#withdrawOnAbort(entry, signal);
      this.#entries.push(entry);
      this.#callers++;
    });
  }

  /** Numbers what waits and hands out its bytes, as one piece. `at`: the instant before they are written. */
  takeBytes(at: Instant): Buffer | undefined {
    const pieces: Buffer[] = [];
    for (const entry of this.#entries.splice(this.#head + this.#sent)) {
      if (entry?.promise === undefined) continue; // withdrawn before it was sent
      entry.xid = this.#nextXid;
      this.#nextXid = this.#nextXid === LAST_XID ? 1 : this.#nextXid + 1;
      entry.sends++;
      entry.sentAt = at;
      setXid(entry.bytes, entry.xid);
      pieces.push(entry.bytes);
      this.#entries.push(entry);
      this.#sent++;
    }
    return pieces.length <= 1 ? pieces[0] : Buffer.concat(pieces);
  }

  /** Hands the reply to the oldest request and says when that was sent. Throws `ProtocolError` when it is not its own. */
  answer(header: ReplyHeader, body: JuteReader): Instant | undefined {
    const entry = this.#sent === 0 ? undefined : this.#entries[this.#head];
    if (entry?.xid !== header.xid) {
      throw new ProtocolError(`a reply to request ${header.xid} while ${entry?.xid ?? "none"} was the oldest`);
    }
    this.#settle(entry, header.errorCode, body);
    // Only now: a reply that cannot be read leaves its request in the line, for `connectionLost`.
    this.#entries[this.#head++] = undefined;
    this.#sent--;
    if (this.#head > SLACK && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return entry.sentAt;
  }

  /**
   * The connection ended. Requests that change something and were sent fail, their outcome is unknown. Those that only read
   * wait to be sent again, unless `cause` is a reply that cannot be understood (it would come again) or they were sent
   * too often. Those never sent stay.
   */
  connectionLost(cause: Error): void {
    const hopeless =
      cause instanceof ZooKeeperError && (cause.code === "PROTOCOL_ERROR" || cause.code === "PACKET_TOO_LARGE");
    const entries = this.#entries.slice(this.#head);
    const kept: Entry[] = [];
    entries.forEach((entry, index) => {
      if (entry?.promise === undefined) return;
      const { changes, path } = entry.operation;
      if (index >= this.#sent) kept.push(entry);
      else if (changes)
        this.#fail(entry, new ConnectionLossError(this.#label(entry), "unknown", { cause, path: this.#show(path) }));
      else if (hopeless && index === 0) this.#fail(entry, cause);
      else if (entry.sends < MOST_SENDS) kept.push(entry);
      else
        this.#fail(
          entry,
          new ConnectionLossError(this.#label(entry), "not-applied", { cause, path: this.#show(path) }),
        );
    });
    this.#entries = kept;
    this.#head = 0;
    this.#sent = 0;
  }

  /** Fails what has waited since `sinceMs` or before without being sent: no server could be reached for too long. */
  failWaiting(sinceMs: number, cause: Error): void {
    for (const entry of this.#entries.splice(this.#head + this.#sent)) {
      if (entry?.promise === undefined) continue;
      if (entry.addedMs > sinceMs) {
        this.#entries.push(entry);
        continue;
      }
      const path = this.#show(entry.operation.path);
      this.#fail(entry, new ConnectionLossError(this.#label(entry), "not-applied", { cause, path }));
    }
  }

  /** Fails everything: the session is over. */
  failAll(error: Error): void {
    const entries = this.#entries;
    this.#entries = [];
    this.#head = 0;
    this.#sent = 0;
    for (const entry of entries) if (entry !== undefined) this.#fail(entry, error);
  }

  #settle(entry: Entry, errorCode: number, body: JuteReader): void {
    const { operation, promise } = entry;
    if (promise === undefined) return;
    try {
      const value = errorCode === 0 ? operation.decode(body) : this.#recover(entry, errorCode);
      operation.answered?.(errorCode);
      this.#finish(entry);
      promise.resolve(value);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      operation.answered?.(errorCode);
      this.#fail(entry, error);
    }
  }

  #recover(entry: Entry, errorCode: number): unknown {
    const recovered = entry.operation.recover?.(errorCode);
    if (recovered !== undefined) return recovered.value;
    throw serverError(errorCode, this.#label(entry), this.#show(entry.operation.path));
  }

  #checkLimits(operation: Operation<unknown>, bytes: Buffer): void {
    const { maxPacketBytes, maxRequests } = this.#options;
    if (bodyBytes(bytes) > maxPacketBytes) {
      const size = `${bodyBytes(bytes)} bytes, the server takes ${maxPacketBytes} (jute.maxbuffer, maxPacketBytes)`;
      throw new ZooKeeperError("PACKET_TOO_LARGE", `${operation.verb}: the request has ${size}`);
    }
    if (this.#entries.length - this.#head >= maxRequests) {
      throw new ZooKeeperError("TOO_MANY_REQUESTS", `${maxRequests} requests wait already (maxRequests)`);
    }
  }

  #label({ operation }: Entry): string {
    return operation.path === undefined ? operation.verb : `${operation.verb} ${this.#show(operation.path) ?? ""}`;
  }

  #show(path: string | undefined): string | undefined {
    return path === undefined ? undefined : this.#options.showPath(path);
  }

  #withdrawOnAbort(entry: Entry, signal: AbortSignal): void {
    const onAbort = (): void => this.#fail(entry, signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    entry.stopListening = () => signal.removeEventListener("abort", onAbort);
  }

  /** The caller has its answer. */
  #finish(entry: Entry): void {
    entry.stopListening?.();
    entry.promise = undefined;
    this.#callers--;
    if (this.#callers === 0) this.#options.onIdle();
  }

  #fail(entry: Entry, error: unknown): void {
    const { promise } = entry;
    if (promise === undefined) return;
    this.#finish(entry);
    promise.reject(error);
  }
}
