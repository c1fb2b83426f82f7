/** A process with many waiters on one name: `waiters.ts URL NAME COUNT`. It is stopped and killed by its parent. */
import { connect } from "../../../src/index.ts";

const [url = "", name = "", count = "0"] = process.argv.slice(2);
const locks = await connect(url, { ttlMs: 3_000 });
await Promise.all(
  Array.from({ length: Number(count) }, () =>
    locks.request(name, () => new Promise((resolve) => setTimeout(resolve, 1))),
  ),
);
