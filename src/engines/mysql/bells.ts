/**
 * The bells that one session holds: named locks (`GET_LOCK`), one for each request that entered the queue through this
 * session. Whoever waits for that request blocks on its bell in a session of its own, and wakes when the bell is let go or when
 * this session ends. A bell is held before its request is in the queue: taken after the commit, a waiter could get it
 * first, and nobody would ring. To cost an uncontended lock nothing, bells are taken some at a time and used again, as
 * long as nobody can have been waiting on them.
 *
 * Names are our own: short, lower case, ASCII (64 characters at most in MySQL, where case does not count).
 */
import type { Clock } from "../../engine/clock.ts";
import { type Packet, plainPacket } from "./packet.ts";

const TAKEN_AT_A_TIME = 16;
/** Bounds what a session asks of the server; requests beyond it have no bell and their waiters look again by themselves. */
const MOST_BELLS = 4_096;

export interface HeldBells {
  readonly prefix: string;
  /** A bell for a new request. `first` has to be sent in front of its packet. Undefined when there are too many. */
  take(): { readonly bell: string; readonly first: Packet | undefined } | undefined;
  /** The bell was not rung and nobody waits on it. */
  putBack(bell: string): void;
  /** The bell was rung: it is gone. */
  rung(bell: string): void;
}

export function newBells(clock: Clock): HeldBells {
  const prefix = `hf:${Buffer.from(clock.randomBytes(9)).toString("hex")}.`;
  const free: string[] = [];
  let held = 0;
  let named = 0;
  return {
    prefix,
    take() {
      const ready = free.pop();
      if (ready !== undefined) return { bell: ready, first: undefined };
      if (held + TAKEN_AT_A_TIME > MOST_BELLS) return undefined;
      const fresh = Array.from({ length: TAKEN_AT_A_TIME }, () => `${prefix}${(named++).toString(36)}`);
      held += fresh.length;
      const [bell = "", ...others] = fresh;
      free.push(...others);
      return { bell, first: plainPacket(`DO ${fresh.map((each) => `GET_LOCK('${each}',0)`).join(",")}`) };
    },
    putBack: (bell) => void free.push(bell),
    rung: () => void held--,
  };
}

/** The prefix of a bell's name: which session holds it. */
export function prefixOf(bell: string): string {
  return bell.slice(0, bell.indexOf(".") + 1);
}
