/** The numbers of the wire protocol. Source: `ZooDefs.OpCode`, `CreateMode`, `Watcher.Event` of Apache ZooKeeper. */

export const OpCode = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  auth: 100,
  setWatches: 101,
  getEphemerals: 103,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
  error: -1,
} as const;

/** Request numbers with a meaning of their own; all others are answered in the order in which they were sent. */
export const Xid = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const;
export const LAST_XID: number = 2 ** 31 - 1;

/**
 * The kinds of nodes. `container`: removed by the server some time after its last child has gone. `ttl`: removed when
 * it has no children and was not changed for `ttlMs`; the server must have `extendedTypesEnabled`.
 */
export type CreateMode =
  | "persistent"
  | "ephemeral"
  | "persistent-sequential"
  | "ephemeral-sequential"
  | "container"
  | "ttl"
  | "ttl-sequential";

export const CREATE_FLAGS: Readonly<Record<CreateMode, number>> = {
  persistent: 0,
  ephemeral: 1,
  "persistent-sequential": 2,
  "ephemeral-sequential": 3,
  container: 4,
  ttl: 5,
  "ttl-sequential": 6,
};

export const EventType = { created: 1, deleted: 2, dataChanged: 3, childrenChanged: 4 } as const;

/** What `removeWatches` takes away on the server. */
export const WatchKind = { children: 1, data: 2, any: 3 } as const;

export const AddWatchMode = { persistent: 0, persistentRecursive: 1 } as const;

/** `jute.maxbuffer` of a server that was not told otherwise: larger requests are answered by closing the connection. */
export const DEFAULT_MAX_PACKET_BYTES = 1_048_575;
export const DEFAULT_MAX_REPLY_BYTES: number = 64 * 1024 * 1024;

export const PASSWORD_BYTES = 16;
