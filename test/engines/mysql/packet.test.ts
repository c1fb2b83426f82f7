/** Values cannot become SQL, whatever they are. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { packet, plainPacket, together } from "../../../src/engines/mysql/packet.ts";

const FOLDER = join(import.meta.dirname, "../../../src/engines/mysql/sql");

test("bytes become hexadecimal literals, numbers digits, bells checked words", () => {
  const values = { name: Buffer.from("a'; DROP TABLE x -- \\"), owner: Buffer.from("\0") };
  const { sql, statements } = packet(["depart"], values);
  assert.equal(statements, 1);
  assert.ok(sql.includes(`X'${Buffer.from("a'; DROP TABLE x -- \\").toString("hex")}'`));
  assert.ok(!sql.includes("DROP"));
  assert.ok(packet(["ring"], { bell: "hf:0a.z" }).sql.includes("RELEASE_LOCK('hf:0a.z')"));
});

test("what is none of these is refused", () => {
  const wrong = ["it's", "", "A", "a b", Number.NaN, 1.5, Infinity, undefined, [], {}] as never[];
  for (const bell of wrong) assert.throws(() => packet(["ring"], { bell }), TypeError, String(bell));
  assert.throws(() => packet(["depart"], {}), TypeError);
});

test("every file has a header, names its values, and ends its statements", () => {
  for (const file of readdirSync(FOLDER)) {
    const text = readFileSync(join(FOLDER, file), "utf8");
    const code = text.replace(/^\s*--.*$/gm, "");
    assert.match(text, /^-- /, `${file} has no header`);
    assert.ok(code.trim().endsWith(";"), `${file} does not end its last statement`);
    const header = text.slice(0, text.search(/^[A-Z]/m));
    for (const [, name] of code.matchAll(/:([a-z_]+)/g)) {
      assert.ok(name === "clock" || header.includes(`:${name}`), `the header of ${file} does not name :${name}`);
    }
  }
});

test("packets know how many results they bring", () => {
  assert.equal(packet(["begin", "commit"], { name: Buffer.from("a") }).statements, 3);
  const both = together(plainPacket("DO 1"), packet(["commit"], {}));
  assert.equal(both.statements, 2);
  assert.equal(both.sql.split(";").filter((each) => each.trim() !== "").length, 2);
});
