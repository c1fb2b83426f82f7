/** Which deployments of an engine a run covers. */
import { type Subject } from "../../src/testing/subject.ts";

/**
 * The first deployment in the short run (`npm test`), all of them in the long one (`npm run test:all`). What is left for
 * the long run is said by name.
 */
export function covered(subjects: readonly Subject[]): readonly Subject[] {
  if (process.env["HOLDFAST_ALL"] === "1") return subjects;
  for (const subject of subjects.slice(1)) console.log(`only in npm run test:all: ${subject.name}`);
  return subjects.slice(0, 1);
}
