/** Opens the socket of a connection: plain TCP or TLS, IPv4 or IPv6. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Host } from "./hosts.ts";

/**
 * `true`, or Node's own options for TLS (`ca`, `cert`, `key`, `servername` …). The server's certificate is verified
 * unless `rejectUnauthorized: false` says otherwise.
 */
export type TlsOptions = true | Omit<ConnectionOptions, "host" | "port" | "socket" | "path">;

/** What a connection needs of a socket; whoever has no network, as a simulation, hands over something else. */
export interface Wire {
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  write(bytes: Buffer): unknown;
  cork(): void;
  uncork(): void;
  destroy(): unknown;
}

export type OpenWire = (host: Host, tls: TlsOptions | undefined, onOpen: () => void) => Wire;

/** Calls `onOpen` once bytes can be sent, for TLS after the handshake. The socket does not keep the process alive. */
export function openSocket({ host, port }: Host, tls: TlsOptions | undefined, onOpen: () => void): Socket {
  const socket =
    tls === undefined
      ? connectTcp({ host, port, noDelay: true }, onOpen)
      : connectTls({ ...(isIP(host) ? {} : { servername: host }), ...(tls === true ? {} : tls), host, port }, onOpen);
  socket.setNoDelay(true);
  return socket.unref();
}
