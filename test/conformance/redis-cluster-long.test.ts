import { registerConformance } from "../../src/testing/node-test.ts";
import { CLUSTER } from "./subjects/redis.ts";

for (const subject of CLUSTER) registerConformance(subject, { concurrency: 2 });
