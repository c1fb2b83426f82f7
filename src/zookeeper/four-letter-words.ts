/** Questions that a server answers outside of any session: `srvr`, `conf` … Servers allow `srvr` by default, others by setting. */
import type { Clock } from "../engine/clock.ts";
import { ZooKeeperError } from "./errors.ts";
import { type Host, hostText } from "./hosts.ts";
import { openSocket, type TlsOptions } from "./socket.ts";

const LONGEST_ANSWER_BYTES = 1024 * 1024;

export interface WordOptions {
  readonly tls?: TlsOptions | undefined;
  readonly withinMs: number;
  readonly clock: Clock;
}

/** One connection and one round trip. Rejects when the server does not answer in time. */
export function fourLetterWord(host: Host, word: string, { tls, withinMs, clock }: WordOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (why: string, cause?: Error): void => {
      late.cancel();
      alive.cancel();
      socket.destroy();
      reject(new ZooKeeperError("UNREACHABLE", `${hostText(host)} did not answer ${word}: ${why}`, { cause }));
    };
    const alive = clock.stayAlive();
    const late = clock.after(withinMs, () => fail(`${withinMs} ms have passed`));
    const socket = openSocket(host, tls, () => socket.write(word));
    socket.on("error", (error) => fail(error.message, error));
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > LONGEST_ANSWER_BYTES) fail("the answer is too long");
    });
    socket.on("close", () => {
      late.cancel();
      alive.cancel();
      resolve(Buffer.concat(chunks).toString());
    });
  });
}

/** What a lock has to know of the ensemble. */
export interface EnsembleSettings {
  /** False: it has no leader at this moment, and tells nothing. */
  readonly serving: boolean;
  readonly standalone: boolean;
  readonly tickTimeMs: number | undefined;
  readonly syncLimit: number | undefined;
}

/** From `srvr`, and from `conf` where the server's settings allow that; undefined where it keeps silent. */
export async function ensembleSettings(host: Host, options: WordOptions): Promise<EnsembleSettings> {
  const [server, settings] = await Promise.all([
    fourLetterWord(host, "srvr", options),
    fourLetterWord(host, "conf", options),
  ]);
  return {
    serving: server !== "" && !/not currently serving/.test(server + settings),
    standalone: /^Mode: standalone$/m.test(server),
    tickTimeMs: numberIn(settings, "tickTime"),
    syncLimit: numberIn(settings, "syncLimit"),
  };
}

function numberIn(settings: string, name: string): number | undefined {
  const value = new RegExp(`^${name}=(\\d+)$`, "m").exec(settings)?.[1];
  return value === undefined ? undefined : Number(value);
}
