import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BuildError, bundle } from "../src/bundle.js";

const fixture = path.join(path.dirname(fileURLToPath(import.meta.url)), "../fixture");
const hostFile = path.join(fixture, "host.js");
const names = {
  "guesthouse:mcp/context@0.1.0": "context",
  "guesthouse:mcp/changes@0.1.0": "changes",
  "wasi:clocks/monotonic-clock@0.2.12": "clock",
  "wasi:cli/stderr@0.2.12": "stderr",
  "wasi:random/random@0.2.12": "random",
};
// Puts the stand-in where the component has its imports.
const fakeHost = {
  name: "fake-host",
  setup(build) {
    build.onResolve({ filter: /^(guesthouse|wasi):/ }, ({ path: name }) => ({ path: name, namespace: "fake" }));
    build.onLoad({ filter: /.*/, namespace: "fake" }, ({ path: name }) => ({
      contents: `export { ${names[name]} as default } from ${JSON.stringify(hostFile)};`,
      resolveDir: fixture,
    }));
  },
};

async function call(calls, interfaces = ["lifecycle", "tools", "resources"]) {
  const dir = await mkdtemp(path.join(tmpdir(), "guesthouse-sdk-"));
  try {
    const text = await bundle(path.join(fixture, "server.ts"), interfaces, {
      external: [],
      plugins: [fakeHost],
      footer: { js: "export { said };" },
    });
    assert.doesNotMatch(text, /\basync\b|\bawait\b/, "an async function of the engine's is left");
    const file = path.join(dir, "guest.mjs");
    await writeFile(file, text);
    const { stdout } = await promisify(execFile)(process.execPath, [path.join(fixture, "run.js"), file, JSON.stringify(calls)]);
    return JSON.parse(stdout);
  } finally {
    await rm(dir, { recursive: true });
  }
}

const callTool = (name, args = {}) => ["tools", "callTool", name, JSON.stringify(args)];
const complete = (val) => ({ ok: { tag: "complete", val: { structuredContent: null, isError: false, meta: null, more: null, ...val } } });
const text = (text) => ({ tag: "text", val: { text, annotations: null, meta: null } });

test("async handlers run to their end, with timers", async () => {
  const { exports, answers } = await call([callTool("waits", { until: 4 }), callTool("never")]);
  assert.deepEqual(exports, ["lifecycle", "resources", "said", "tools"]);
  assert.deepEqual(JSON.parse(answers[0].ok.val.structuredContent), { sum: 10, now: 20 });
  assert.deepEqual(answers[1].err, { tag: "internal", val: "the handler waits for a promise that nothing will settle" });
});

test("errors become those of the contract, never a crash", async () => {
  const { answers } = await call([
    callTool("plain"),
    callTool("gone"),
    callTool("own"),
    callTool("needs"),
    callTool("odd"),
    callTool("nope"),
    ["tools", "callTool", "plain", "not json"],
    ["resources", "readResource", "a://boom"],
    ["resources", "readResource", "a://none"],
    ["lifecycle", "init", '{"refuse":"no, thanks"}'],
    ["lifecycle", "init", "{}"],
  ]);
  assert.deepEqual(answers[0], complete({ content: [text("plain")], isError: true }));
  const errors = answers.slice(1).map(({ err }) => err);
  assert.deepEqual(errors.slice(0, 3), [
    { tag: "not-found", val: "gone" },
    { tag: "rpc", val: { code: -32050, message: "own", data: '{"a":1}' } },
    { tag: "missing-client-capability", val: '{"roots":{}}' },
  ]);
  assert.match(errors[3].val, /"smell" is no type of content/);
  assert.deepEqual(errors[4], { tag: "not-found", val: "nope" });
  assert.equal(errors[5].tag, "internal");
  assert.deepEqual(errors.slice(6), [
    { tag: "internal", val: "a detail for the log" },
    { tag: "not-found", val: "a://none" },
    "no, thanks",
    undefined,
  ]);
});

test("handlers speak to the host, and have its randomness", async () => {
  const { answers, said } = await call([callTool("speaks")]);
  const [first, second, client, uuid, random] = JSON.parse(answers[0].ok.val.structuredContent);
  assert.deepEqual([first, second, client], [true, false, "client"]);
  assert.equal(uuid, "07070707-0707-4707-8707-070707070707");
  assert.ok(random > 0 && random < 1);
  assert.deepEqual(said, [
    ["stderr", 'to the log {"a":1}\n'],
    ["log", "warning", null, '{"x":1}'],
    ["updated", "a://b"],
  ]);
});

test("content of all kinds takes the contract's shape", async () => {
  const { answers } = await call([callTool("blocks"), ["resources", "readResource", "a://blob"], ["resources", "listResources", null]]);
  const [image, link, embedded] = answers[0].ok.val.content;
  assert.deepEqual([image.tag, Object.values(image.val.data), image.val.mimeType], ["image", [1, 2], "image/png"]);
  assert.deepEqual([link.tag, link.val.uri, link.val.size, link.val.icons], ["resource-link", "a://b", null, []]);
  assert.deepEqual(embedded.val.contents.body, { tag: "text", val: "t" });
  const [read] = answers[1].ok.val.contents;
  assert.deepEqual([read.mimeType, read.body.tag, Object.values(read.body.val)], ["application/octet-stream", "blob", [1, 2, 3]]);
  assert.deepEqual(
    answers[2].ok.resources.map(({ uri, name, mimeType }) => [uri, name, mimeType]),
    [
      ["a://blob", "blob", null],
      ["a://boom", "a://boom", null],
    ],
  );
});

test("what cannot be bundled is one sentence, and the bundler's own message above it", async () => {
  await assert.rejects(bundle(path.join(fixture, "nowhere.js"), ["lifecycle"], { logLevel: "silent" }), BuildError);
});
