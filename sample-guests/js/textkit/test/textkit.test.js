import assert from "node:assert/strict";
import { test } from "node:test";
import { testClient } from "@guesthouse/sdk/testing";
import server from "../src/server.js";

const client = testClient(server);

test("words, characters and lines are counted", async () => {
  const count = async (text) => Object.values((await client.callTool("word_count", { text })).structured);
  assert.deepEqual(await count(""), [0, 0, 0]);
  assert.deepEqual(await count("one\n"), [1, 4, 1]);
  assert.deepEqual(await count("a\nb"), [2, 3, 2]);
  assert.deepEqual(await count(" un été\n🦀 \u00a0x"), [4, 12, 2]);
  assert.equal((await client.callTool("word_count", { text: "one" })).content[0].text, "1 word");
});

test("slugs keep letters and digits", async () => {
  const slug = async (text) => (await client.callTool("slugify", { text })).content[0].text;
  assert.equal(await slug("Ça va? Très bien!"), "ça-va-très-bien");
  assert.equal(await slug("--Rust 2024__x--"), "rust-2024-x");
  assert.equal(await slug("ΟΔΟΣ"), "οδος");
  assert.equal(await slug("हिन्दी"), "हिन-दी");
  const nothing = await client.callTool("slugify", { text: "?!" });
  assert.ok(nothing.isError);
  assert.equal(nothing.content[0].text, "The text has no letter or digit.");
});

const diff = `diff --git a/src/old name.js b/src/new name.js
similarity index 90%
rename from src/old name.js
rename to src/new name.js
--- a/src/old name.js
+++ b/src/new name.js
@@ -1,3 +1,4 @@ function main()
 context
--- a deleted line that looks like a header
+++ an added one
+another
\\ No newline at end of file
 context
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
--- /dev/null\t2026-01-01
+++ b/born.txt\t2026-01-01
@@ -0,0 +1,2 @@
+one
+two
`;

test("diffs are read line by line", async () => {
  const { content, structured } = await client.callTool("summarize_diff", { diff });
  assert.equal(content[0].text, "3 files, 4 additions, 2 deletions");
  assert.deepEqual(structured.files, [
    { path: "src/new name.js", change: "renamed", additions: 2, deletions: 1 },
    { path: "gone.txt", change: "deleted", additions: 0, deletions: 1 },
    { path: "born.txt", change: "added", additions: 2, deletions: 0 },
  ]);
  const none = await client.callTool("summarize_diff", { diff: "hello" });
  assert.ok(none.isError);
  assert.match(none.content[0].text, /^This is no unified diff/);
});

test("case changes by URI", async () => {
  const read = async (uri) => (await client.readResource(uri))[0].text;
  assert.equal(await read("textkit://case/title/the%20qUICK%20%C3%A9t%C3%A9"), "The Quick Été");
  assert.equal(await read("textkit://case/upper/stra%C3%9Fe"), "STRASSE");
  for (const uri of ["textkit://case/upper/a/b", "textkit://case/camel/a"]) {
    await assert.rejects(read(uri), { kind: "not-found", message: uri });
  }
  assert.match(await read("textkit://stopwords"), /^a\nan\n/);
});

test("the prompt has a tone, which is completed", async () => {
  const { messages } = await client.getPrompt("rewrite", { text: "Hi." });
  assert.match(messages[0].content, /in a plain tone.*\n\nHi\.$/s);
  assert.deepEqual(await client.complete({ prompt: "rewrite" }, "tone", "P"), ["plain", "playful"]);
});
