import { registerConformance } from "../../src/testing/node-test.ts";
import { subjects } from "./subjects/memory.ts";

for (const subject of subjects) registerConformance(subject);
