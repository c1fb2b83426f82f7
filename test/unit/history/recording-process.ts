/** Records a request and its grant into the file that it is given, says so, and waits to be killed in the middle of a line. */
import { appendFileSync } from "node:fs";
import { historyFile, HistoryRecorder } from "../../../src/testing/history/index.ts";

const [path = ""] = process.argv.slice(2);
const recorder = new HistoryRecorder("child", historyFile(path));
const request = recorder.request({ name: "n" });
request.granted({ token: 7n, remainingMs: () => 500 });
appendFileSync(path, '{"atMs":1,"proc');
process.stdout.write("told\n");
setInterval(() => {}, 60_000);
