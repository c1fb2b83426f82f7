import { registerConformance } from "../../src/testing/node-test.ts";
import { subjects } from "./subjects/sqlite.ts";

for (const subject of subjects) registerConformance(subject);
