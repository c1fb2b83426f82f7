/** One connection to one server, from the first byte to the last: handshake, pings, time-outs, replies, events. */
import { type Clock, instant, type Instant, type Timer } from "../engine/clock.ts";
import { ProtocolError, ZooKeeperError } from "./errors.ts";
import { FrameReader, readReplyHeader, type ReplyHeader, requestPacket } from "./frames.ts";
import { type Host, hostText } from "./hosts.ts";
import { JuteReader } from "./jute.ts";
import { OpCode, Xid } from "./protocol.ts";
import {
  type ConnectRequest,
  connectPacket,
  type ConnectResponse,
  readConnectResponse,
  readServerEvent,
  type ServerEvent,
} from "./records.ts";
import type { RequestLine } from "./request-line.ts";
import type { OpenWire, TlsOptions, Wire } from "./socket.ts";
import type { SessionTiming } from "./timing.ts";

export interface ConnectionOptions {
  readonly host: Host;
  readonly tls: TlsOptions | undefined;
  readonly openWire: OpenWire;
  readonly clock: Clock;
  readonly line: RequestLine;
  readonly maxReplyBytes: number;
  /** Ping when the oldest request is unanswered for so long; 0: never. */
  readonly nudgeMs: number;
  readonly connectTimeoutMs: number;
  readonly handshake: ConnectRequest;
  /**
   * The server's answer for the session; `sentAt`: the instant before it was asked. Returns what to send ahead of
   * everything else and the time-outs from now on, or undefined when this connection is of no use (it is then closed).
   */
  onAttach(response: ConnectResponse, sentAt: Instant): { first: Buffer[]; timing: SessionTiming } | undefined;
  /** The server answered something that was sent at `sentAt`; `zxid` is 0 or the last change it had seen. */
  onAnswer(sentAt: Instant, zxid: bigint): void;
  onEvent(event: ServerEvent): void;
  onAuth(errorCode: number): void;
  /** Called once, at the end. */
  onEnd(cause: Error): void;
}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #socket: Wire;
  readonly #frames: FrameReader;
  /** The instant before the handshake was sent. */
  #askedAt: Instant;
  #timing: SessionTiming | undefined;
  #sentAtMs: number;
  #heardAtMs: number;
  #suspect = false;
  #pings: Instant[] = [];
  #timer: Timer;
  #nudge: Timer | undefined;
  #flushing = false;
  #ended = false;

  constructor(options: ConnectionOptions) {
    const { clock, host, tls, openWire, handshake, maxReplyBytes, connectTimeoutMs } = options;
    this.#options = options;
    this.#frames = new FrameReader(maxReplyBytes);
    this.#askedAt = instant(clock);
    this.#sentAtMs = this.#heardAtMs = this.#askedAt.monoMs;
    const socket = openWire(host, tls, () => {
      this.#askedAt = instant(clock);
      socket.write(connectPacket(handshake));
    });
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(this.#loss("the server closed the connection")));
    this.#timer = clock.after(connectTimeoutMs, () =>
      this.#end(this.#loss(`no answer within ${Math.round(connectTimeoutMs)} ms`)),
    );
  }

  get host(): Host {
    return this.#options.host;
  }

  /** The session may send requests. */
  get attached(): boolean {
    return this.#timing !== undefined && !this.#ended;
  }

  /**
   * Sends what waits in the line. At once when nothing is under way: whoever asks one thing at a time loses no time, and
   * what it does next is done while the server works. Otherwise, or if there is `more` to come, once everything that runs
   * now has added its requests: one write for all of them.
   */
  flush(more: boolean): void {
    if (!this.attached) return;
    if (!more && this.#options.line.unanswered === 0) {
      this.#flush();
      return;
    }
    if (this.#flushing) return;
    this.#flushing = true;
    // Behind the promise callbacks of this turn: those that got answers together ask together.
    process.nextTick(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  /** Sends a packet of the session itself, ahead of what waits in the line. */
  send(bytes: Buffer): void {
    if (this.#ended) return;
    this.#sentAtMs = this.#options.clock.monotonicMs();
    this.#socket.write(bytes);
  }

  /** Other time-outs from now on. */
  setTiming(timing: SessionTiming): void {
    if (!this.attached) return;
    this.#timing = timing;
    this.#timer.cancel();
    this.#pulse();
  }

  /** Ends it from our side. */
  destroy(cause: Error): void {
    this.#end(cause);
  }

  #flush(): void {
    if (!this.attached) return;
    const { clock, line } = this.#options;
    const at = instant(clock);
    const bytes = line.takeBytes(at);
    if (bytes === undefined) return;
    this.#sentAtMs = at.monoMs;
    this.#socket.write(bytes);
    this.#watchOldest();
  }

  #receive(chunk: Buffer): void {
    this.#heardAtMs = this.#options.clock.monotonicMs();
    this.#suspect = false;
    try {
      for (const body of this.#frames.frames(chunk)) {
        if (this.#ended) return;
        if (this.#timing === undefined) this.#attach(readConnectResponse(body));
        else this.#read(new JuteReader(body));
      }
    } catch (error) {
      this.#end(error instanceof Error ? error : new ProtocolError(String(error)));
    }
  }

  #attach(response: ConnectResponse): void {
    this.#timer.cancel();
    const attached = this.#options.onAttach(response, this.#askedAt);
    if (attached === undefined) {
      this.#end(this.#loss("the server does not know the session"));
      return;
    }
    this.#timing = attached.timing;
    this.#socket.cork();
    for (const bytes of attached.first) this.send(bytes);
    this.#flush();
    this.#socket.uncork();
    this.#pulse();
  }

  #read(reader: JuteReader): void {
    const header = readReplyHeader(reader);
    switch (header.xid) {
      case Xid.notification:
        this.#options.onEvent(readServerEvent(reader));
        return;
      case Xid.ping:
        this.#answered(this.#pings.shift(), 0n); // pings carry no zxid of a change that we have seen
        return;
      case Xid.auth:
        this.#options.onAuth(header.errorCode);
        return;
      case Xid.setWatches:
        return; // the events came before it
      default:
        this.#answer(header, reader);
    }
  }

  #answer(header: ReplyHeader, reader: JuteReader): void {
    const sentAt = this.#options.line.answer(header, reader);
    this.#answered(sentAt, header.zxid);
  }

  #answered(sentAt: Instant | undefined, zxid: bigint): void {
    if (sentAt !== undefined) this.#options.onAnswer(sentAt, zxid);
  }

  /** Runs at the earlier of the next ping and the read time-out, not at every packet. */
  #pulse(): void {
    const { clock } = this.#options;
    const timing = this.#timing;
    if (timing === undefined || this.#ended) return;
    const now = clock.monotonicMs();
    const silentMs = now - this.#heardAtMs;
    if (silentMs >= timing.readTimeoutMs) {
      this.#silent(silentMs);
      return;
    }
    if (now - this.#sentAtMs >= timing.pingIntervalMs) this.#ping();
    const nextMs = Math.min(this.#sentAtMs + timing.pingIntervalMs - now, this.#heardAtMs + timing.readTimeoutMs - now);
    this.#timer = clock.after(Math.ceil(nextMs), () => this.#pulse());
  }

  /** It may have been this process that slept: what came meanwhile is read before the connection is given up. */
  #silent(silentMs: number): void {
    if (this.#suspect) {
      this.#end(this.#loss(`nothing came for ${Math.round(silentMs)} ms`));
      return;
    }
    this.#suspect = true;
    this.#ping();
    this.#timer = this.#options.clock.after(SECOND_LOOK_MS, () => this.#pulse());
  }

  #ping(): void {
    this.#pings.push(instant(this.#options.clock));
    this.send(PING);
  }

  /**
   * Server 3.8.0 may keep an answer until something else arrives (ZOOKEEPER-4537, mended in 3.7.2, 3.8.1 and 3.9.0), for
   * seconds. A ping while the oldest request is unanswered bounds that.
   */
  #watchOldest(): void {
    const { nudgeMs, clock, line } = this.#options;
    if (nudgeMs === 0 || this.#nudge !== undefined) return;
    this.#nudge = clock.after(nudgeMs, () => {
      this.#nudge = undefined;
      const oldest = line.oldestSentAt;
      if (oldest === undefined || this.#ended) return;
      if (clock.monotonicMs() - oldest.monoMs >= nudgeMs * NUDGE_SHARE && this.#pings.length === 0) this.#ping();
      this.#watchOldest();
    });
  }

  #loss(why: string): Error {
    return new ZooKeeperError("CONNECTION_LOSS", `${hostText(this.#options.host)}: ${why}`);
  }

  #end(cause: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer.cancel();
    this.#nudge?.cancel();
    this.#socket.destroy();
    this.#options.onEnd(cause);
  }
}

const SECOND_LOOK_MS = 20;
const PING = requestPacket(OpCode.ping, Xid.ping, () => {});
/** The check runs every `nudgeMs`; what has waited for most of it by then is late enough. */
const NUDGE_SHARE = 2 / 3;
