import { registerConformance } from "../../src/testing/node-test.ts";
import { covered } from "./extent.ts";
import { subjects } from "./subjects/mysql.ts";

for (const subject of covered(subjects)) registerConformance(subject, { concurrency: 5 });
