/**
 * A guard inside ZooKeeper: a node keeps the latest token that entered, and every change of the caller's carries a check of
 * that node's version in the same transaction. Whoever enters later changes the version.
 */
import { ConfigError, EngineUnavailableError, StaleTokenError } from "../engine/errors.ts";
import { LONGEST_NAME_BYTES } from "../engine/name.ts";
import {
  type TransactionRequest,
  TransactionError,
  type TransactionResult,
  type ZooKeeper,
  ZooKeeperError,
} from "../zookeeper/index.ts";
import { checkEpoch, type FenceOptions, type Fencing, isStale, type Mark, markOf } from "./mark.ts";

export interface ZooKeeperFenceOptions extends FenceOptions {
  /** The node below which fences are kept; made when missing. Default "/holdfast-fence". */
  root?: string | undefined;
}

export interface ZooKeeperEntry {
  /** A part for a `multi` of your own: it fails with BAD_VERSION when a later holder has entered. */
  readonly check: TransactionRequest;
  /** Your changes, together with the check: all or none. Errors: `StaleTokenError`, and those of `ZooKeeper.multi`. */
  multi(parts: readonly TransactionRequest[]): Promise<TransactionResult[]>;
}

export interface ZooKeeperFence {
  /**
   * Before the first read. From now on every lower token is refused. One entry serves for the whole hold.
   * Errors: `StaleTokenError`, those of the client, `EngineUnavailableError` when others enter all the time.
   * Cost: two round trips; one when this token has entered before.
   */
  enter(resource: string, fencing: Fencing): Promise<ZooKeeperEntry>;
}

/** What is needed of the client. */
export type ZooKeeperTransactions = Pick<ZooKeeper, "create" | "getData" | "setData" | "multi">;

/** Others that enter at the same moment make an attempt fail; so many in a row are no accident. */
const TRIES = 100;

class VersionFence implements ZooKeeperFence {
  readonly #client: ZooKeeperTransactions;
  readonly #root: string;
  readonly #epoch: number;

  constructor(client: ZooKeeperTransactions, { root = "/holdfast-fence", epoch = 0 }: ZooKeeperFenceOptions) {
    if (!/^(\/[^/]+)+$/.test(root)) throw new ConfigError(`${JSON.stringify(root)} is no path of a node`);
    this.#client = client;
    this.#root = root;
    this.#epoch = checkEpoch(epoch);
  }

  async enter(resource: string, fencing: Fencing): Promise<ZooKeeperEntry> {
    const mark = markOf(fencing, this.#epoch);
    const path = `${this.#root}/${nodeName(resource)}`;
    for (let tries = 0; tries < TRIES; tries++) {
      const version = await this.#attempt(path, resource, mark);
      if (version !== undefined) return this.#entry(path, version, resource, mark);
    }
    throw new EngineUnavailableError(`${TRIES} others entered ${JSON.stringify(resource)} at the same moment`);
  }

  /** The version of the fence while `mark` is the latest; undefined: somebody else changed it meanwhile. */
  async #attempt(path: string, resource: string, mark: Mark): Promise<number | undefined> {
    try {
      const { data, stat } = await this.#client.getData(path);
      const seen = parse(data, path);
      if (isStale(mark, seen)) throw new StaleTokenError(resource, mark.token, seen.token);
      // A server that lags behind may show an old version: then the check of the first change fails.
      if (seen.epoch === mark.epoch && seen.token === mark.token) return stat.version;
      return (await this.#client.setData(path, format(mark), { version: stat.version })).version;
    } catch (error) {
      if (isCode(error, "BAD_VERSION")) return undefined;
      if (!isCode(error, "NO_NODE")) throw error;
    }
    return await this.#create(path, mark);
  }

  async #create(path: string, mark: Mark): Promise<number | undefined> {
    const parts = path.split("/").slice(1);
    for (let depth = 1; depth < parts.length; depth++) {
      await unlessThere(this.#client.create(`/${parts.slice(0, depth).join("/")}`));
    }
    const created = await unlessThere(this.#client.create(path, format(mark)));
    return created?.stat.version;
  }

  #entry(path: string, version: number, resource: string, mark: Mark): ZooKeeperEntry {
    const check: TransactionRequest = { kind: "check", path, version };
    return {
      check,
      multi: async (parts) => {
        try {
          return (await this.#client.multi([check, ...parts])).slice(1);
        } catch (error) {
          const refused = error instanceof TransactionError && error.index === 0 && isCode(error, "BAD_VERSION");
          throw refused ? new StaleTokenError(resource, mark.token, undefined, { cause: error }) : error;
        }
      },
    };
  }
}

/** One name, one node: percent-encoding is injective, and the dash keeps "." and ".." from being names. */
function nodeName(resource: string): string {
  if (resource === "" || !resource.isWellFormed() || Buffer.byteLength(resource) > LONGEST_NAME_BYTES) {
    throw new ConfigError(`a guarded resource is named by 1 to ${LONGEST_NAME_BYTES} bytes of well-formed Unicode`);
  }
  return `-${encodeURIComponent(resource)}`;
}

function format({ epoch, token }: Mark): string {
  return `${epoch}:${token}`;
}

function parse(data: Buffer, path: string): Mark {
  const [, epoch, token] = /^(\d+):(\d+)$/.exec(data.toString()) ?? [];
  if (epoch === undefined || token === undefined) throw new ConfigError(`${path} is no fence: it holds something else`);
  return { epoch: Number(epoch), token: BigInt(token) };
}

function isCode(error: unknown, code: ZooKeeperError["code"]): boolean {
  return error instanceof ZooKeeperError && error.code === code;
}

async function unlessThere<T>(created: Promise<T>): Promise<T | undefined> {
  try {
    return await created;
  } catch (error) {
    if (!isCode(error, "NODE_EXISTS")) throw error;
    return undefined;
  }
}

/** A guard that lives in the ensemble which it guards. Takes the client of `holdfast/zookeeper`. */
export function zookeeperFence(client: ZooKeeperTransactions, options: ZooKeeperFenceOptions = {}): ZooKeeperFence {
  return new VersionFence(client, options);
}
