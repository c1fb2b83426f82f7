import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryFence, type MemoryFence } from "../../src/fence/index.ts";
import { guardCases, type Guarded } from "./guard-cases.ts";

const values = new Map<string, string>();
/** One guard a thing and an epoch would not do: the thing's own guard is asked with the epoch in the token. */
const fences = new Map<string, MemoryFence>();

function guarded(epoch: number): Guarded {
  const fence = (name: string): MemoryFence => {
    const known = fences.get(name) ?? memoryFence({ name });
    fences.set(name, known);
    return known;
  };
  return {
    enter: async (name, fencing) => fence(name).enter(withEpoch(fencing, epoch)),
    write: async (name, fencing, value) => {
      fence(name).write(withEpoch(fencing, epoch), () => values.set(name, value));
    },
    read: async (name) => values.get(name),
  };
}

function withEpoch(fencing: Parameters<MemoryFence["enter"]>[0], epoch: number): Parameters<MemoryFence["enter"]>[0] {
  return typeof fencing === "bigint" ? { token: fencing, epoch } : { ...fencing, epoch };
}

guardCases("memory", () => guarded(0), guarded);

test("memory: a change that is not over when it returns is a mistake, and said so", () => {
  assert.throws(() => memoryFence().write(1n, async () => {}), TypeError);
  assert.equal(
    memoryFence().write(1n, () => 5),
    5,
  );
  assert.throws(() => memoryFence({ epoch: -1 }), { code: "CONFIG" });
  assert.throws(() => memoryFence({ epoch: 1.5 }), { code: "CONFIG" });
});
