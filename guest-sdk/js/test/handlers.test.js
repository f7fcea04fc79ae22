import assert from "node:assert/strict";
import { test } from "node:test";
import { interfacesOf, jsonSchema } from "../src/handlers.js";
import { InvalidParams, NotFound, defineServer, result, user } from "../src/index.js";
import { parseTemplate } from "../src/template.js";
import { testClient } from "../src/testing.js";

const base = { name: "test", version: "1" };
const tool = (run, more) => ({ ...base, tools: { it: { run, ...more } } });

test("capabilities follow from what is declared", () => {
  const run = () => {};
  assert.deepEqual(interfacesOf(defineServer(base)), ["lifecycle"]);
  assert.deepEqual(interfacesOf(defineServer({ ...base, tools: { a: { run } }, prompts: {} })), ["lifecycle", "tools"]);
  assert.deepEqual(interfacesOf(defineServer({ ...base, templates: { "a://{b}": { read: run, complete: { b: ["c"] } } } })), [
    "lifecycle",
    "resources",
    "completion",
  ]);
  assert.deepEqual(interfacesOf(defineServer({ ...base, prompts: { a: { render: run } } })), ["lifecycle", "prompts"]);
});

test("a definition that cannot work is refused with a sentence", () => {
  assert.throws(() => defineServer({ version: "1" }), /name must be a text/);
  assert.throws(() => defineServer({ ...base, tools: { a: {} } }), /tool "a" needs a function run/);
  assert.throws(() => defineServer({ ...base, prompts: { a: null } }), /prompt "a" needs a function render/);
});

test("what a tool gives decides its result", async () => {
  const call = (run) => testClient(defineServer(tool(run))).callTool("it");
  assert.deepEqual((await call(() => "text")).content, [{ type: "text", text: "text" }]);
  assert.deepEqual((await call(() => {})).content, []);
  const plain = await call(async () => ({ a: 1 }));
  assert.deepEqual([plain.structured, plain.content[0].text], [{ a: 1 }, '{"a":1}']);
  const both = await call(() => result({ text: "one", structured: { a: 1 } }));
  assert.deepEqual([both.structured, both.content[0].text], [{ a: 1 }, "one"]);
});

test("what a tool throws is a result, unless it has a meaning", async () => {
  const call = (thrown) =>
    testClient(
      defineServer(
        tool(() => {
          throw thrown;
        }),
      ),
    ).callTool("it");
  for (const [thrown, text] of [
    [new Error("no"), "no"],
    ["no", "no"],
    [undefined, "undefined"],
    [new Error(""), "Error"],
  ]) {
    const { isError, content } = await call(thrown);
    assert.deepEqual([isError, content[0].text], [true, text]);
  }
  await assert.rejects(call(new InvalidParams("bad")), { kind: "invalid-params" });
  await assert.rejects(call(new NotFound()), { kind: "not-found", message: "it" });
});

test("inherited members are no tools, prompts or resources", async () => {
  const client = testClient(defineServer(tool(() => "x")));
  for (const name of ["constructor", "toString", "__proto__"]) {
    await assert.rejects(client.callTool(name), { kind: "not-found", message: name });
    await assert.rejects(client.getPrompt(name), { kind: "not-found" });
    await assert.rejects(client.readResource(name), { kind: "not-found" });
  }
});

test("schemas of libraries describe and check themselves", async () => {
  const input = {
    "~standard": {
      jsonSchema: { input: ({ target }) => ({ type: "object", $comment: target }) },
      validate: (value) => (value.n === undefined ? { issues: [{ path: ["n"], message: "is required" }] } : { value: { n: value.n * 2 } }),
    },
  };
  const server = defineServer(tool(({ n }) => String(n), { input }));
  assert.equal((await testClient(server).callTool("it", { n: 2 })).content[0].text, "4");
  await assert.rejects(testClient(server).callTool("it", {}), { kind: "invalid-params", message: "/n: is required" });
  assert.deepEqual(jsonSchema(input, "input"), { type: "object", $comment: "draft-2020-12" });
  assert.deepEqual(jsonSchema({ type: "object" }, "input"), { type: "object" });
});

test("prompts check what they need, and may give texts, messages or everything", async () => {
  const get = async (render, args) =>
    testClient(defineServer({ ...base, prompts: { p: { description: "d", arguments: { a: { required: true } }, render } } })).getPrompt(
      "p",
      args,
    );
  assert.deepEqual(await get(({ a }) => a, { a: "x" }), { description: "d", messages: [{ role: "user", content: "x" }] });
  assert.deepEqual((await get(() => [user("x"), "y"], { a: "" })).messages, [
    { role: "user", content: "x" },
    { role: "user", content: "y" },
  ]);
  assert.equal((await get(() => ({ description: "e", messages: [] }), { a: "" })).description, "e");
  await assert.rejects(
    get(() => "", {}),
    { kind: "invalid-params", message: "a is required" },
  );
});

test("templates match as RFC 6570 says, or are refused", () => {
  const cases = [
    ["a://{x}", "a://b%20c%2Fd", { x: "b c/d" }],
    ["a://{x}", "a://b/c", undefined],
    ["a://{x}", "a://", undefined],
    ["a://{x}", "a://b%zz", undefined],
    ["a://{x}.{y}", "a://b.c.d", { x: "b.c", y: "d" }],
    ["a://{+x}", "a://b/c?d\n", { x: "b/c?d\n" }],
    ["a://(b)", "a://(b)", {}],
  ];
  for (const [template, uri, want] of cases) assert.deepEqual(parseTemplate(template).match(uri), want, template);
  for (const template of ["{?x}", "{x*}", "{}", "{x", "x}", "{x}{y}", "{x}/{x}"])
    assert.throws(() => parseTemplate(template), TypeError, template);
});
