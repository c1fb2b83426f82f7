import { registerConformance } from "../../src/testing/node-test.ts";
import { SENTINEL } from "./subjects/redis.ts";

for (const subject of SENTINEL) registerConformance(subject, { concurrency: 2 });
