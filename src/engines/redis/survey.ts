/** What kind of server this is: looked at once, when the engine opens. */
import { ConfigError } from "../../engine/errors.ts";
import { RedisReplyError, type RedisClient } from "../../redis/index.ts";

const OLDEST = [6, 2] as const;

/** Errors: `ConfigError` for a server that is too old or a replica. Says what endangers locks as a process warning. */
export async function survey(redis: RedisClient): Promise<void> {
  for (const text of await infos(redis)) {
    const info = parse(text);
    checkVersion(info);
    if (info.get("role") === "slave") {
      throw new ConfigError("this Redis server is a replica: locks need the master");
    }
    warnOfEviction(info);
  }
}

/** INFO may be forbidden, then nothing is known. */
async function infos(redis: RedisClient): Promise<string[]> {
  try {
    return (await redis.onMasters(["info"])).map(String);
  } catch (error) {
    if (error instanceof RedisReplyError && error.code === "NOPERM") return [];
    throw error;
  }
}

function parse(text: string): Map<string, string> {
  return new Map(
    text
      .split(/\r?\n/)
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
}

/** Valkey and other descendants name the Redis version that they are compatible with. */
function checkVersion(info: Map<string, string>): void {
  const version = info.get("redis_version");
  if (version === undefined) return;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new ConfigError(`the redis engine needs Redis ${OLDEST.join(".")} or newer; this server is ${version}`);
}

function warnOfEviction(info: Map<string, string>): void {
  const policy = info.get("maxmemory_policy");
  const limit = Number(info.get("maxmemory") ?? 0);
  if (policy === undefined || policy === "noeviction" || limit === 0) return;
  process.emitWarning(
    `the Redis server may evict locks when its memory is full: maxmemory-policy is ${policy}, noeviction is safe`,
    { code: "HOLDFAST_REDIS_EVICTION" },
  );
}
