/** Arguments that TypeScript would refuse: a program in JavaScript is told at once, the same on every engine. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "../../src/index.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-arguments-"));
after(() => rmSync(directory, { recursive: true }));

for (const url of ["memory:", `sqlite:${join(directory, "locks.db")}`]) {
  test(`${url.slice(0, 6)}: wrong arguments`, async () => {
    const locks = await connect(url);
    const wrong = (value: unknown): never => value as never;
    try {
      for (const options of [5, "x", true]) {
        const refused = { name: "TypeError", message: /^options must be an object, not / };
        await assert.rejects(locks.acquire("a", wrong(options)), refused);
        await assert.rejects(locks.tryAcquire("a", wrong(options)), refused);
        await assert.rejects(
          locks.request("a", wrong(options), () => {}),
          refused,
        );
        await assert.rejects(connect(url, wrong(options)), refused);
      }
      await (await connect(url, null)).close();
      await assert.rejects(locks.query(wrong(null)), { name: "TypeError", message: "a filter must be an object" });
      await assert.rejects(locks.query(wrong("a")), { name: "TypeError", message: "a filter must be an object" });
      await assert.rejects(locks.query({ prefix: wrong(1) }), {
        name: "TypeError",
        message: "prefix must be a string",
      });
      await assert.rejects(locks.query({ name: wrong(1) }), { name: "TypeError" });
      await assert.rejects(locks.query({ limit: 0 }), { code: "CONFIG" });
      await locks.acquire("a");
      for (const token of [-1n, 0n, 2n ** 63n, 2n ** 100n]) assert.equal(await locks.evict("a", token), false);
    } finally {
      await locks.close();
    }
  });
}
