/**
 * Redis URLs.
 *
 * | form | means |
 * |---|---|
 * | `redis://user:password@host:6379/0` | one server, database 0 |
 * | `redis+sentinel://user:password@host:26379,host:26379/main/0` | Sentinels, the name of the master, database |
 * | `redis+cluster://user:password@host:7000,host:7001` | some nodes of a Cluster |
 *
 * `rediss`, `rediss+sentinel` and `rediss+cluster` are the same over TLS, verified. User and password are
 * percent-encoded. Parameters after `?`: `client=ioredis` or `client=redis` picks the library (default: whichever is
 * installed, ioredis first), `ca=FILE` is the authority to trust, `insecureTls=true` trusts anybody (a warning says
 * so), `sentinelUser` and `sentinelPassword` are for the Sentinels themselves. Others are left to the caller.
 */
import { RedisConfigError } from "./errors.ts";

export type Topology = "single" | "sentinel" | "cluster";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface TlsSettings {
  /** Path of a PEM file. Default: the authorities that Node trusts. */
  readonly ca: string | undefined;
  readonly verify: boolean;
}

export interface RedisUrl {
  readonly topology: Topology;
  /** The server, the Sentinels, or some nodes of the Cluster; at least one. */
  readonly hosts: readonly [HostPort, ...HostPort[]];
  /** Sentinel only. */
  readonly masterName: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  readonly database: number;
  readonly tls: TlsSettings | undefined;
  readonly library: "ioredis" | "redis" | undefined;
  /** The parameters that are not ours. */
  readonly rest: ReadonlyMap<string, string>;
}

const FORM = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)((?:\/[^/?#]*)*)(?:\?([^#]*))?$/i;
const HOST = /^(\[[0-9a-f:.%]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i;
const MOST_HOSTS = 64;

/** Errors: `RedisConfigError`, which never repeats the URL: it may hold a password. */
export function parseRedisUrl(url: string): RedisUrl {
  const parts = FORM.exec(url);
  if (parts === null) {
    throw new RedisConfigError(
      "not a Redis URL: use redis://host:6379/0, redis+sentinel://host:26379,host:26379/master/0 or redis+cluster://host:7000,host:7001",
    );
  }
  const [, scheme = "", kind, login, hosts = "", path = "", query = ""] = parts;
  const topology = (kind?.toLowerCase() ?? "single") as Topology;
  const parameters = new Map(new URLSearchParams(query));
  const take = (name: string): string | undefined => {
    const value = parameters.get(name);
    parameters.delete(name);
    return value;
  };
  const { masterName, database } = parsePath(topology, path);
  const [username, password] = parseLogin(login);
  return {
    topology,
    hosts: parseHosts(topology, hosts),
    masterName,
    database,
    username,
    password,
    sentinelUsername: take("sentinelUser"),
    sentinelPassword: take("sentinelPassword"),
    tls: parseTls(scheme.toLowerCase() === "rediss", take("ca"), take("insecureTls")),
    library: parseLibrary(take("client")),
    rest: parameters,
  };
}

function parseHosts(topology: Topology, text: string): readonly [HostPort, ...HostPort[]] {
  const standard = topology === "sentinel" ? 26_379 : 6379;
  const [first, ...others] = text.split(",").map((each): HostPort => {
    const parts = HOST.exec(each);
    const port = Number(parts?.[2] ?? standard);
    if (parts?.[1] === undefined || port < 1 || port > 65_535) {
      throw new RedisConfigError("a host in the Redis URL is not of the form host, host:port or [IPv6]:port");
    }
    return { host: parts[1].replace(/^\[|\]$/g, ""), port };
  });
  if (first === undefined || others.length >= MOST_HOSTS) {
    throw new RedisConfigError(`a Redis URL names 1 to ${MOST_HOSTS} hosts`);
  }
  if (topology === "single" && others.length > 0) {
    throw new RedisConfigError("several hosts need redis+sentinel:// or redis+cluster://");
  }
  return [first, ...others];
}

function parsePath(topology: Topology, path: string): { masterName: string; database: number } {
  const segments = path.split("/").slice(1).map(decode);
  const masterName = topology === "sentinel" ? (segments.shift() ?? "") : "";
  if (topology === "sentinel" && masterName === "") {
    throw new RedisConfigError("redis+sentinel:// needs the name of the master as its path: …:26379/main");
  }
  const [database = ""] = segments;
  if (segments.length > 1 || !/^\d{0,5}$/.test(database)) {
    throw new RedisConfigError("the database in the Redis URL is not a number");
  }
  if (topology === "cluster" && Number(database) !== 0) {
    throw new RedisConfigError("a Redis Cluster has database 0 only");
  }
  return { masterName, database: Number(database) };
}

function parseLogin(login: string | undefined): [username: string | undefined, password: string | undefined] {
  if (login === undefined || login === "") return [undefined, undefined];
  const colon = login.indexOf(":");
  const username = decode(colon < 0 ? login : login.slice(0, colon));
  const password = colon < 0 ? undefined : decode(login.slice(colon + 1));
  return [username === "" ? undefined : username, password];
}

function parseTls(tls: boolean, ca: string | undefined, insecure: string | undefined): TlsSettings | undefined {
  if (!tls && (ca !== undefined || insecure !== undefined)) {
    throw new RedisConfigError("ca and insecureTls are for rediss:// URLs: this one does not use TLS");
  }
  return tls ? { ca, verify: insecure !== "true" } : undefined;
}

function parseLibrary(name: string | undefined): "ioredis" | "redis" | undefined {
  if (name === undefined || name === "ioredis" || name === "redis") return name;
  throw new RedisConfigError("client= in the Redis URL is ioredis or redis");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisConfigError("a part of the Redis URL is not well percent-encoded");
  }
}
