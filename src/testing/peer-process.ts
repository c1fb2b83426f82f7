/** The program of a peer process: takes commands over IPC and ends when its parent does. */
import { connect, LockLostError, type LeaseOptions } from "../index.ts";
import { PeerHands } from "./peer-hands.ts";

export type Command = readonly [id: number, method: string, ...parameters: unknown[]];
export type Reply = readonly [id: number, result: unknown, error?: PeerFailure];
export interface PeerFailure {
  readonly name: string;
  readonly message: string;
  readonly code: unknown;
  readonly reason: unknown;
}

let hands: PeerHands | undefined;

async function run(method: string, parameters: readonly unknown[]): Promise<unknown> {
  switch (method) {
    case "connect": {
      const [url, defaults] = parameters as [string, LeaseOptions | undefined];
      hands = new PeerHands(await connect(url, defaults));
      return undefined;
    }
    case "detach":
      // From here on the channel keeps nobody alive: the process ends when its work does.
      setImmediate(() => process.channel?.unref());
      return undefined;
    default: {
      if (hands === undefined) throw new Error("the peer is not connected");
      const act = Reflect.get(hands, method) as (...parameters: unknown[]) => Promise<unknown>;
      return act.apply(hands, [...parameters]);
    }
  }
}

function failure(error: unknown): PeerFailure {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return { name, message, code, reason: error instanceof LockLostError ? error.reason : undefined };
}

process.on("message", ([id, method, ...parameters]: Command) => {
  const send = (reply: Reply): void => void (process.connected && process.send?.(reply));
  run(method, parameters).then(
    (result) => send([id, result]),
    (error: unknown) => send([id, undefined, failure(error)]),
  );
});
process.on("disconnect", () => process.exit());
