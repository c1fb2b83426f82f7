import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { startRedisCluster } from "../../servers/redis-topologies.ts";
import { startRedis, type RedisServer } from "../../servers/redis.ts";

let server: RedisServer;
before(async () => void (server = await startRedis()));
after(() => server.stop());

const INDEX = new URL("../../src/redis/index.ts", import.meta.url).href;
const CLOCK = new URL("../../src/engine/clock.ts", import.meta.url).href;

function program(url: string, body: string): string {
  return `
    import { fromUrl, overClient, createScript } from ${JSON.stringify(INDEX)};
    import { systemClock as clock } from ${JSON.stringify(CLOCK)};
    const options = { clock, commandTimeoutMs: 3000, connectTimeoutMs: 1000 };
    const open = async () => { const redis = await fromUrl(${JSON.stringify(url)}, options); await redis.connect(); return redis; };
    ${body}
  `;
}

/** Runs a program to its end; `onOpen` is called when it prints "open". */
async function run(source: string, onOpen?: () => void): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output === "open\n") onOpen?.();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(late);
  return { code, output };
}

for (const library of ["ioredis", "redis"]) {
  test(`${library}: open connections do not keep the process alive, an awaited answer does`, async () => {
    const { code, output } = await run(
      program(
        `${server.url}?client=${library}`,
        `const redis = await open();
         await redis.subscribe("channel", { message() {}, subscribed() {} });
         for (let n = 0; n < 3; n++) {
           await new Promise((resolve) => setTimeout(resolve, 20));
           console.log(await redis.command(["set", "a", "b"]));
         }
         redis.command(["get", "a"]).then(console.log);`,
      ),
    );
    assert.equal(code, 0, output);
    assert.equal(output, "OK\nOK\nOK\nb\n");
  });

  test(`${library}: reconnecting to a dead server does not keep the process alive`, async () => {
    const mortal = await startRedis();
    const ended = run(
      program(
        `${mortal.url}?client=${library}`,
        `const redis = await open();
         await redis.subscribe("channel", { message() {}, subscribed() {} });
         console.log("open");
         await redis.command(["blpop", "never", "10"]).catch(() => {});`,
      ),
      () => void mortal.kill(),
    );
    const { code, output } = await ended;
    await mortal.stop();
    assert.equal(code, 0, output);
    assert.match(output, /^open\n/);
  });

  test(`${library}: a Cluster client of our own does not keep the process alive`, async () => {
    const cluster = await startRedisCluster();
    const hosts = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const { code, output } = await run(
      program(
        `redis+cluster://${hosts}?client=${library}`,
        `const redis = await open();
         await redis.subscribe("channel", { message() {}, subscribed() {} });
         const set = createScript("return redis.call('SET', KEYS[1], '1')");
         for (const key of ["a", "b", "c", "d"]) await redis.run(set, [key], [""]);
         console.log("done");`,
      ),
    );
    await cluster.stop();
    assert.equal(code, 0, output);
    assert.equal(output, "done\n");
  });
}

for (const library of ["ioredis", "redis", "ioredis5", "redis5"]) {
  test(`${library}: errors of a user's client without a listener are warnings, not a crash`, async () => {
    const mortal = await startRedis();
    const make = library.startsWith("ioredis")
      ? `const { Redis } = await import(${JSON.stringify(library)}); const client = new Redis(url);`
      : `const { createClient } = await import(${JSON.stringify(library)}); const client = createClient({ url }); await client.connect();`;
    const ended = run(
      program(
        mortal.url,
        `const url = ${JSON.stringify(mortal.url)};
         ${make}
         const redis = overClient(client, options);
         await redis.connect();
         console.log("open");
         await new Promise((resolve) => setTimeout(resolve, 2500));
         console.log("alive");
         process.exit(0);`,
      ),
      () => void mortal.kill(),
    );
    const { code, output } = await ended;
    await mortal.stop();
    assert.equal(code, 0, output);
    assert.match(output, /open[^]*HOLDFAST_REDIS_CLIENT_ERROR[^]*alive/);
  });
}
