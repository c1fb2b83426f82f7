import { registerConformance } from "../../src/testing/node-test.ts";
import { subjects } from "./subjects/redis.ts";

for (const subject of subjects) registerConformance(subject, { concurrency: 2 });
