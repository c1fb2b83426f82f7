/** Who belongs to COMMAND, as the system lists them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessGroup } from "../../src/cli/members.ts";
import { start, stateOf, until } from "./command-line.ts";

test("a group of which only zombies are left is gone: not everybody's parent collects them", async () => {
  // `sleep` collects nobody. Its child leads a group of its own, and ends.
  const parent = start("/bin/sh", ["-c", 'setsid sh -c "echo \\$\\$" & exec sleep 60']);
  const leader = await parent.commandPid();
  await until(() => stateOf(leader) === "Z", "the leader is a zombie");
  assert(process.kill(-leader, 0), "the system still lists the group");
  assert(new ProcessGroup(leader).areGone());
  parent.child.kill("SIGKILL");
  await parent.finished;
});

test("a group with a member that runs is not gone", async () => {
  const parent = start("/bin/sh", ["-c", 'setsid sh -c "echo \\$\\$; exec sleep 60" & exec sleep 60']);
  const leader = await parent.commandPid();
  const group = new ProcessGroup(leader);
  assert(!group.areGone());
  group.signal("SIGKILL");
  await until(() => group.areGone(), "the group is gone");
  parent.child.kill("SIGKILL");
  await parent.finished;
});
