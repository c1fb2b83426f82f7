/** The memory engine: locks within one process. For tests, and for programs that may later change the URL. */
import { systemClock, type Clock } from "../../engine/clock.ts";
import type { Engine } from "../../engine/engine.ts";
import { ConfigError } from "../../engine/errors.ts";
import { LeaseEngine } from "../../engine/lease-engine.ts";
import { MemorySpace } from "./space.ts";
import { MemoryStore } from "./store.ts";

export interface MemoryOptions {
  /** Engines with the same name share their locks. Default: a space of its own. */
  name?: string | undefined;
  /** Default: this machine's clocks. Hand over a `ManualClock` to decide what time it is. */
  clock?: Clock | undefined;
}

const named = new Map<string, MemorySpace>();

function spaceNamed(name: string): MemorySpace {
  const space = named.get(name) ?? new MemorySpace();
  named.set(name, space);
  return space;
}

/** Locks in this process's memory. Cost of every operation: no round trip. */
export function memory(options: MemoryOptions = {}): Engine {
  const clock = options.clock ?? systemClock;
  const space = options.name === undefined ? new MemorySpace() : spaceNamed(options.name);
  return new LeaseEngine(new MemoryStore(space, clock), clock);
}

/** `memory:` is a space of its own, `memory:name` is shared within the process. */
export function fromUrl(url: string): Engine {
  const name = url.slice("memory:".length);
  if (/[?#]/.test(name)) throw new ConfigError("memory: takes a plain name and no options, for example memory:test");
  return name === "" ? memory() : memory({ name });
}
