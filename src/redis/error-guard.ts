/**
 * A client without an `error` listener crashes the process (redis) or prints (ioredis) when its connection breaks. We
 * are told by our own commands, so we neither want the crash nor may we swallow an error that is the user's to see:
 * with a listener of the user's ours does nothing, without one it becomes a warning of the process.
 */
export interface ErrorEmitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  listenerCount(event: string): number;
}

const guards = new WeakMap<ErrorEmitter, { users: number; remove: () => void }>();

/** Returns how to take the guard off. Several users of one client share one guard. */
export function guardErrors(client: ErrorEmitter): () => void {
  const guard = guards.get(client) ?? install(client);
  guard.users++;
  let released = false;
  return () => {
    if (released) return;
    released = true;
    if (--guard.users > 0) return;
    guards.delete(client);
    guard.remove();
  };
}

function install(client: ErrorEmitter): { users: number; remove: () => void } {
  let lastMessage = "";
  const onError = (error: unknown): void => {
    if (client.listenerCount("error") > 1) return;
    const message = error instanceof Error ? error.message : String(error);
    if (message === lastMessage) return; // a client that cannot reconnect repeats itself
    lastMessage = message;
    process.emitWarning(`the Redis client reports: ${message}`, { code: "HOLDFAST_REDIS_CLIENT_ERROR" });
  };
  const onReady = (): void => void (lastMessage = "");
  client.on("error", onError);
  client.on("ready", onReady);
  const guard = {
    users: 0,
    remove: () => {
      client.off("error", onError);
      client.off("ready", onReady);
    },
  };
  guards.set(client, guard);
  return guard;
}
