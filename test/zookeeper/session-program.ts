/**
 * A program with one session, for tests that freeze it or look at when it ends. Arguments: connection string, time-out
 * in ms, mode. Prints the path of its ephemeral node, then each state, one a line.
 */
import { ZooKeeper } from "../../src/zookeeper/index.ts";

const [servers = "", timeout = "", mode = ""] = process.argv.slice(2);
const zk = await ZooKeeper.connect(servers, { sessionTimeoutMs: Number(timeout) });
const { path } = await zk.create("/session-program-", "", { mode: "ephemeral-sequential" });
console.log(path);
zk.onState((state) => {
  console.log(state);
  if (state === "expired") zk.getData(path).catch((error: Error) => console.log(error.name));
});
console.log("ready");
if (mode === "unref") {
  zk.unref();
  // One request more: the process waits for its answer, and ends then.
  void zk.getData(path).then(() => console.log("answered"));
}
