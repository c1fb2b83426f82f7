/**
 * What happens around a lock in each scene. The same scene is played with a planted lock, which then breaks a promise, and
 * with Holdfast on the same servers, which does not. So no scene relies on the mistake: whoever does not get in waits.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Doors } from "./lock.ts";
import type { User } from "./user.ts";

/** So long a lease, or the patience of a monitor, is in these scenes. */
export const TTL_MS = 300;
/** By then whoever can get in is in. */
const SOON_MS = 200;
/** A free place that has not passed on by then never will. */
export const NEVER_MS = 2_500;

export interface Cast {
  readonly a: User;
  readonly b: User;
  readonly c: User;
  readonly doors: Doors;
  /** Scenes with several nodes: what happens to them. */
  readonly nodes: readonly { down(): Promise<void>; up(): Promise<void> }[];
}

export type Play = (cast: Cast) => Promise<void>;

/** A is slow, B gets its lock, A comes back and releases; C asks. */
export const lateRelease: Play = async ({ a, b, c }) => {
  await a.ask().inside(SOON_MS);
  await b.ask().inside(TTL_MS + SOON_MS);
  await a.leave();
  await c.ask().inside(SOON_MS / 2);
};

/** A is slow, B gets its lock and writes, A comes back and writes as well. */
export const lateWrite: Play = async ({ a, b }) => {
  await a.ask().inside(SOON_MS);
  a.write();
  if (await b.ask().inside(TTL_MS + SOON_MS)) b.write();
  a.write();
};

/** A has seen that the lock is free and is held up; B comes. */
export const twoLook: Play = async ({ a, b, doors }) => {
  const arrived = doors.close("a has looked");
  a.ask();
  await Promise.race([arrived, sleep(SOON_MS)]);
  await b.ask().inside(SOON_MS);
  doors.open("a has looked");
  await a.inside(SOON_MS);
};

/** A goes; B and C wake, C too late; while C sets its next watch B goes as well. */
export const missedWatch: Play = async ({ a, b, c, doors }) => {
  await a.ask().inside(SOON_MS);
  b.ask();
  await sleep(SOON_MS / 2);
  c.ask();
  await sleep(SOON_MS / 2);
  const awake = doors.close("c is awake");
  await a.leave();
  await Promise.race([awake, sleep(SOON_MS)]);
  await b.inside(SOON_MS);
  const late = doors.close("c was too late");
  doors.open("c is awake");
  await Promise.race([late, sleep(SOON_MS)]);
  await b.leave();
  doors.open("c was too late");
};

/** A holds, B waits behind it, C behind B; B dies. */
export const deadWaiter: Play = async ({ a, b, c }) => {
  await a.ask().inside(SOON_MS);
  b.ask();
  await sleep(SOON_MS / 2);
  c.ask();
  await sleep(SOON_MS / 2);
  b.die();
  await c.inside(SOON_MS);
};

/** A has a majority without the last node. That comes back, the second one crashes and comes back; B asks. */
export const crashedNode: Play = async ({ a, b, nodes }) => {
  const [, second, last] = nodes;
  await last?.down();
  await a.ask().inside(SOON_MS);
  await last?.up();
  await second?.down();
  await second?.up();
  await b.ask().inside(2 * SOON_MS);
};

/** A works for longer than anybody thought. */
export const slowHolder: Play = async ({ a, b }) => {
  await a.ask().inside(SOON_MS);
  await b.ask().inside(TTL_MS + SOON_MS);
};

/** A dies inside; B waits. */
export const deadHolder: Play = async ({ a, b }) => {
  await a.ask().inside(SOON_MS);
  b.ask();
  a.die();
};

/** A dies inside; two monitors see it, the second acts late, when B is inside; C asks. */
export const twoMonitors: Play = async ({ a, b, c, doors }) => {
  await a.ask().inside(SOON_MS);
  const seen = [doors.close("first monitor has seen it"), doors.close("second monitor has seen it")];
  a.die();
  await Promise.race([Promise.all(seen), sleep(TTL_MS + SOON_MS)]);
  doors.open("first monitor has seen it");
  await b.ask().inside(NEVER_MS);
  doors.open("second monitor has seen it");
  await c.ask().inside(SOON_MS);
};

/** The end of every scene: whoever is inside goes, until nobody wants anything, or nothing happens any more. */
export async function curtain({ a, b, c }: Cast): Promise<void> {
  await Promise.all([a, b, c].map((user) => user.finish(NEVER_MS)));
}
