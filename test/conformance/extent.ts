/** Which engines and deployments a run covers. */
import { SCHEMES } from "../../src/engines/registry.ts";
import type { Subject } from "../../src/testing/subject.ts";

/** Two schemes of one engine. */
const ENGINE_OF: Record<string, string> = { rediss: "redis", mariadb: "mysql" };

/** Every engine of the registry. `redis+cluster` is a form of `redis`. */
export const ENGINES: readonly string[] = [
  ...new Set(SCHEMES.map((scheme) => scheme.replace(/\+.*/, "")).map((each) => ENGINE_OF[each] ?? each)),
];

/** How an engine is put under test; importing it starts nothing. */
export async function subjectsOf(engine: string): Promise<readonly Subject[]> {
  const { subjects } = (await import(`./subjects/${engine}.ts`)) as { subjects: readonly Subject[] };
  return subjects;
}

/**
 * The first deployment in the short run (`npm test`), all of them in the long one (`npm run test:all`). What is left for
 * the long run is said by name.
 */
export function covered(subjects: readonly Subject[]): readonly Subject[] {
  if (process.env["HOLDFAST_ALL"] === "1") return subjects;
  for (const subject of subjects.slice(1)) console.log(`only in npm run test:all: ${subject.name}`);
  return subjects.slice(0, 1);
}
