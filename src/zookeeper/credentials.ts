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
  /** Some server has accepted it. */
  accepted: boolean;
}

export class Credentials {
  #items: Item[];
  /** Sent on this connection and not answered. */
  #underWay: Item[] = [];

  /** `initial`: without them the session is of no use. */
  constructor(initial: readonly Credential[]) {
    this.#items = initial.map((credential) => ({ ...credential, settle: undefined, accepted: true }));
  }

  get size(): number {
    return this.#items.length;
  }

  /** `send` is given the packet if there is a connection to send it on now; otherwise it goes with the next one. */
  add(credential: Credential, send: ((bytes: Buffer) => void) | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (error?: ZooKeeperError): void => (error === undefined ? resolve() : reject(error));
      const item: Item = { ...credential, settle, accepted: false };
      this.#items.push(item);
      if (send === undefined) return;
      this.#underWay.push(item);
      send(authPacket(item));
    });
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
    const { accepted, settle } = item;
    item.settle = undefined;
    if (errorCode === 0) {
      item.accepted = true;
      settle?.();
      return undefined;
    }
    const error = serverError(errorCode, `authentication with scheme ${JSON.stringify(item.scheme)}`, undefined);
    this.#items = this.#items.filter((other) => other !== item);
    settle?.(error);
    return accepted ? error : undefined;
  }

  /** The session is over. */
  failAll(error: ZooKeeperError): void {
    for (const item of this.#items) item.settle?.(error);
    this.#items = [];
    this.#underWay = [];
  }
}

function authPacket({ scheme, secret }: Credential): Buffer {
  return packet((writer) => writer.int32(Xid.auth).int32(OpCode.auth).int32(0).string(scheme).buffer(secret));
}
