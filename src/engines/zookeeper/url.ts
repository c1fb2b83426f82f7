/** URLs of the zookeeper engine. */
import { ConfigError } from "../../engine/errors.ts";
import type { ZooKeeperOptions } from "./index.ts";

const URL_PARTS = /^zookeeper:\/\/(?:([^/?#@]*)@)?([^/?#@]+)(\/[^?#]*)?(?:\?([^#]*))?$/i;

/**
 * `zookeeper://user:password@host:2181,host:2181/root?fair=false&sessionTimeoutMs=30000&leaderLagMs=12000&tls=true`: all
 * but the hosts may be left out. User and password are shown with scheme "digest". Errors never repeat the URL: it may
 * hold a secret.
 */
export function urlOptions(url: string): ZooKeeperOptions {
  const [, credentials, servers, path = "", query = ""] = URL_PARTS.exec(url) ?? [];
  if (servers === undefined) throw new ConfigError("a ZooKeeper URL is zookeeper://host:2181,host:2181/root");
  const options: ZooKeeperOptions = { servers: decode(servers) };
  if (path !== "" && path !== "/") options.root = decode(path).replace(/\/$/, "");
  if (credentials !== undefined) {
    const colon = credentials.indexOf(":");
    if (colon < 1) throw new ConfigError("credentials in a ZooKeeper URL are user:password");
    const secret = `${decode(credentials.slice(0, colon))}:${decode(credentials.slice(colon + 1))}`;
    options.auth = [{ scheme: "digest", secret }];
  }
  for (const [name, value] of new URLSearchParams(query)) {
    const read = QUERY[name];
    if (read === undefined) throw new ConfigError(`${JSON.stringify(name)} is no option of a ZooKeeper URL`);
    read(options, name, value);
  }
  return options;
}

const QUERY: Record<string, (options: ZooKeeperOptions, name: string, value: string) => void> = {
  fair: (options, name, value) => void (options.fair = flag(name, value)),
  tls: (options, name, value) => void (options.tls = flag(name, value) ? true : undefined),
  sessionTimeoutMs: (options, name, value) => void (options.sessionTimeoutMs = number(name, value)),
  leaderLagMs: (options, name, value) => void (options.leaderLagMs = number(name, value)),
  connectWithinMs: (options, name, value) => void (options.connectWithinMs = number(name, value)),
};

function flag(name: string, value: string): boolean {
  if (value === "true" || value === "1" || value === "") return true;
  if (value === "false" || value === "0") return false;
  throw new ConfigError(`${name} in a ZooKeeper URL is true or false`);
}

function number(name: string, value: string): number {
  if (/^\d+$/.test(value)) return Number(value);
  throw new ConfigError(`${name} in a ZooKeeper URL is a number of milliseconds`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ConfigError("a ZooKeeper URL has a % that is no percent-encoding");
  }
}
