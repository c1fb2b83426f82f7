/** Who the session says it is. Proved after each connect, before anything else; the server answers in order. No I/O. */
import { serverError, type ZooKeeperError } from "./errors.ts";
import { packet } from "./frames.ts";
import { OpCode, Xid } from "./protocol.ts";

/** For scheme "digest": `user:password` in UTF-8. */
export interface Credential {
  readonly scheme: string;
  readonly secret: Uint8Array;
}

interface Item extends Credential {
  /** Tells the one who added it, once. */
  settle: ((error?: ZooKeeperError) => void) | undefined;
  /** The session cannot go on without it: it was there from the start, or a server has accepted it before. */
  needed: boolean;
}

export class Credentials {
  /** Resolves when a server has accepted those that were there from the start. */
  readonly proved: Promise<unknown>;
  #items: Item[] = [];
  /** Sent on this connection and not answered. */
  #underWay: Item[] = [];

  /** `initial`: without them the session is of no use. */
  constructor(initial: readonly Credential[]) {
    this.proved = Promise.all(initial.map((credential) => this.#add(credential, true).proved));
    this.proved.catch(() => {}); // whoever starts the session asks for it
  }

  get size(): number {
    return this.#items.length;
  }

  /** `send` is given the packet if there is a connection to send it on now; otherwise it goes with the next one. */
  add(credential: Credential, send: ((bytes: Buffer) => void) | undefined): Promise<void> {
    const { item, proved } = this.#add(credential, false);
    if (send !== undefined) {
      this.#underWay.push(item);
      send(authPacket(item));
    }
    return proved;
  }

  /** What to send first on a new connection. */
  packets(): Buffer[] {
    this.#underWay = [...this.#items];
    return this.#items.map(authPacket);
  }

  /**
   * The server's answer to the oldest. One that was refused is forgotten and whoever added it is told. Returns the error
   * when the session cannot go on without it.
   */
  answer(errorCode: number): ZooKeeperError | undefined {
    const item = this.#underWay.shift();
    if (item === undefined) return undefined;
    const { needed, settle } = item;
    item.settle = undefined;
    if (errorCode === 0) {
      item.needed = true;
      settle?.();
      return undefined;
    }
    const error = serverError(errorCode, `authentication with scheme ${JSON.stringify(item.scheme)}`, undefined);
    this.#items = this.#items.filter((other) => other !== item);
    settle?.(error);
    return needed ? error : undefined;
  }

  /** The session is over. */
  failAll(error: ZooKeeperError): void {
    for (const item of this.#items) item.settle?.(error);
    this.#items = [];
    this.#underWay = [];
  }

  #add(credential: Credential, needed: boolean): { item: Item; proved: Promise<void> } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settle = (error?: ZooKeeperError): void => (error === undefined ? resolve() : reject(error));
    const item: Item = { ...credential, settle, needed };
    this.#items.push(item);
    return { item, proved: promise };
  }
}

function authPacket({ scheme, secret }: Credential): Buffer {
  return packet((writer) => writer.int32(Xid.auth).int32(OpCode.auth).int32(0).string(scheme).buffer(secret));
}
