/** Connection strings: `host:port,host:port/chroot`, as ZooKeeper's other clients write them. */
import type { Clock } from "../engine/clock.ts";
import { invalidArgument } from "./errors.ts";

export interface Host {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionString {
  readonly hosts: readonly Host[];
  /** "" or a path. */
  readonly chroot: string;
}

const DEFAULT_PORT = 2181;

/** IPv6 addresses stand in brackets when a port follows: `[::1]:2181`. The port is 2181 when none is given. */
export function parseConnectionString(text: string): ConnectionString {
  const slash = text.indexOf("/");
  const list = slash < 0 ? text : text.slice(0, slash);
  const hosts = list
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(parseHost);
  if (hosts.length === 0) throw invalidArgument(`no host in the connection string ${JSON.stringify(text)}`);
  return { hosts, chroot: slash < 0 ? "" : text.slice(slash) };
}

const BRACKETED = /^\[([^\]]+)\](?::(\d+))?$/;
const PLAIN = /^([^:[\]]+)(?::(\d+))?$/;
const BARE_IPV6 = /^([\da-f.]*(?::[\da-f.]*){2,})$/i;

function parseHost(text: string): Host {
  const match = BRACKETED.exec(text) ?? PLAIN.exec(text) ?? BARE_IPV6.exec(text);
  const host = match?.[1];
  const port = Number(match?.[2] ?? DEFAULT_PORT);
  if (host === undefined || port < 1 || port > 65_535) {
    throw invalidArgument(`${JSON.stringify(text)} is not a host with an optional port (host:2181, [::1]:2181)`);
  }
  return { host, port };
}

export function hostText({ host, port }: Host): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Goes round the hosts in an order of its own, so that many clients spread over the servers. */
export class HostRing {
  readonly #hosts: Host[];
  #next = 0;

  constructor(hosts: readonly Host[], clock: Clock) {
    this.#hosts = [...hosts];
    for (let last = this.#hosts.length - 1; last > 0; last--) {
      const other = Math.floor(clock.random() * (last + 1));
      const [left, right] = [this.#hosts[last], this.#hosts[other]];
      if (left !== undefined && right !== undefined) [this.#hosts[last], this.#hosts[other]] = [right, left];
    }
  }

  get size(): number {
    return this.#hosts.length;
  }

  next(): Host {
    const host = this.#hosts[this.#next % this.#hosts.length];
    this.#next++;
    if (host === undefined) throw invalidArgument("no host");
    return host;
  }
}
