import { registerConformance } from "../../src/testing/node-test.ts";
import { SINGLE } from "./subjects/redis.ts";

for (const subject of SINGLE) registerConformance(subject, { concurrency: 2 });
