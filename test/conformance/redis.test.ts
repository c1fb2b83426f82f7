import { registerConformance } from "../../src/testing/node-test.ts";
import { covered } from "./extent.ts";
import { SINGLE } from "./subjects/redis.ts";

for (const subject of covered(SINGLE)) registerConformance(subject, { concurrency: 2 });
