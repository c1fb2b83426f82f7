import { registerConformance } from "../../src/testing/node-test.ts";
import { subjects } from "./subjects/redlock.ts";

for (const subject of subjects) registerConformance(subject);
