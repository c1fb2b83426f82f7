import { registerConformance } from "../../src/testing/node-test.ts";
import { subjects } from "./subjects/zookeeper.ts";

for (const subject of subjects) registerConformance(subject, { concurrency: 4, timeoutMs: 120_000 });
