/** A ZooKeeper client for Node: `import { ZooKeeper } from "holdfast/zookeeper"`. Knows nothing of locks. */
export { type Acl, type AclEntry, CREATOR_ACL, digestId, OPEN_ACL, Permission, READ_ACL } from "./acl.ts";
export {
  type CreateOptions,
  type Data,
  type ReadOptions,
  type RequestOptions,
  type TransactionRequest,
  type VersionOptions,
  ZooKeeper,
} from "./client.ts";
export { type AuthOptions, type ClientOptions } from "./client-options.ts";
export {
  ConnectionLossError,
  ProtocolError,
  SessionExpiredError,
  ZooKeeperError,
  type ZooKeeperErrorCode,
  type ZooKeeperErrorDetails,
} from "./errors.ts";
export { type EnsembleSettings, ensembleSettings, fourLetterWord, type WordOptions } from "./four-letter-words.ts";
export { type ConnectionString, type Host, parseConnectionString } from "./hosts.ts";
export {
  type AuthenticatedId,
  type CreatedNode,
  type NodeAcl,
  type NodeChildren,
  type NodeData,
} from "./operations.ts";
export { type CreateMode } from "./protocol.ts";
export { type Stat } from "./records.ts";
export { type SessionIdentity, type SessionState } from "./session.ts";
export { type OpenWire, type TlsOptions, type Wire } from "./socket.ts";
export { DEFAULT_LEADER_LAG_MS, leaderLagMs, type SessionTiming, sessionTiming } from "./timing.ts";
export { TransactionError, type TransactionResult } from "./transactions.ts";
export { type WatchEvent, type Watcher, type WatchEventType } from "./watches.ts";
