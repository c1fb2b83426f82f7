/** What a manager that closes leaves behind on the nodes: nothing. Through the library that drops what is not written yet. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { redlock } from "../../../src/engines/redlock/index.ts";
import { ClosedError, connect, type LockManager } from "../../../src/index.ts";
import { startDeployment, TERMS, type Deployment } from "./deployment.ts";

let deployment: Deployment;
before(async () => void (deployment = await startDeployment(3)));
after(() => deployment.stop());

const withRedis = (): Promise<LockManager> =>
  connect(redlock({ urls: deployment.servers.map(({ url }) => `${url}?client=redis`), ...TERMS }), { ttlMs: 3_000 });

async function pendingOf(locks: LockManager, name: string): Promise<number> {
  const { pending } = await locks.query({ prefix: name });
  return pending.length;
}

test("requests that wait are withdrawn from every node before close resolves", async () => {
  const other = await deployment.connect();
  for (let turn = 0; turn < 5; turn++) {
    const name = `waiting ${turn}`;
    const holder = await other.acquire(name);
    const locks = await withRedis();
    const requests = [locks.acquire(name), locks.acquire(name)];
    const ends = Promise.all(requests.map((each) => assert.rejects(each, ClosedError)));
    while ((await pendingOf(other, name)) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await locks.close();
    assert.equal(await pendingOf(other, name), 0);
    await ends;
    await holder.release();
  }
});

test("a request that is closed in the middle of its ballot leaves no votes", async () => {
  const other = await deployment.connect();
  for (let turn = 0; turn < 5; turn++) {
    const name = `voting ${turn}`;
    const locks = await withRedis();
    const ends = assert.rejects(locks.acquire(name), ClosedError);
    // The wish is on its way, the votes are not here yet.
    await new Promise((resolve) => setImmediate(resolve));
    await locks.close();
    await ends;
    const lock = await other.tryAcquire(name);
    assert.ok(lock !== null, "votes of the closed manager are in the way");
    await lock.release();
  }
});
