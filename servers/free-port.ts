/** Ports for private servers on 127.0.0.1. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const given = new Set<number>();

/**
 * A port on 127.0.0.1 that nobody listens on, never given twice by this program. It lies below the range from which
 * the system takes the ports of outgoing connections (32768 on Linux): so a server that is killed and started again
 * finds its port still free.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(12_000, 32_000);
    if (given.has(port) || !(await canListen(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error("no free port found on 127.0.0.1 in 200 attempts");
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
