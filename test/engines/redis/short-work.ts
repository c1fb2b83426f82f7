/** A process that does a little work and should end by itself: `short-work.ts URL MANNER`. */
import { connect } from "../../../src/index.ts";

const [url = "", manner] = process.argv.slice(2);
const locks = await connect(url, { ttlMs: 300 });
await locks.request("work", () => new Promise((resolve) => setTimeout(resolve, 450)));
if (manner === "close") await locks.close();
if (manner?.startsWith("held")) {
  await locks.acquire("held");
  if (manner === "held, server dies") {
    process.send?.("holding");
    await new Promise((resolve) => process.once("message", resolve));
  }
}
process.channel?.unref();
process.disconnect();
