/** From a URL to its engine. Engines are loaded only when asked for, so an unused one costs nothing and needs no client. */
import type { Engine } from "../engine/engine.ts";
import { ConfigError } from "../engine/errors.ts";

/** Makes the engine for a URL; does no I/O yet. Throws `ConfigError` when the URL is not one of its own. */
export type EngineFactory = (url: string) => Engine;

const redis = async (): Promise<EngineFactory> => (await import("./redis/index.ts")).fromUrl;

const LOADERS: Record<string, () => Promise<EngineFactory>> = {
  memory: async () => (await import("./memory/index.ts")).fromUrl,
  redlock: async () => (await import("./redlock/index.ts")).fromUrl,
  sqlite: async () => (await import("./sqlite/index.ts")).fromUrl,
  mysql: async () => (await import("./mysql/index.ts")).fromUrl,
  mariadb: async () => (await import("./mysql/index.ts")).fromUrl,
  redis,
  rediss: redis,
  "redis+sentinel": redis,
  "rediss+sentinel": redis,
  "redis+cluster": redis,
  "rediss+cluster": redis,
  zookeeper: async () => (await import("./zookeeper/index.ts")).fromUrl,
};

/** The URL schemes that `connect` knows. */
export const SCHEMES: readonly string[] = Object.keys(LOADERS);

/** The engine for `url`. Errors: `ConfigError` when no engine has the scheme. Never repeats the URL: it may hold a secret. */
export async function engineForUrl(url: string): Promise<Engine> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const load = scheme === undefined ? undefined : LOADERS[scheme];
  if (load === undefined) {
    const known = SCHEMES.map((each) => `${each}:`).join(", ");
    const given = scheme === undefined ? "this URL has no scheme" : `no engine has the scheme ${scheme}:`;
    throw new ConfigError(`${given}; use one of ${known} (for example sqlite:./locks.db)`);
  }
  return (await load())(url);
}
