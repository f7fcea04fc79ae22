// Makes one module of a guest: the author's modules, the SDK and the runtime.

import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));

/** A mistake of the author's: shown as one sentence, without a stack. */
export class BuildError extends Error {}

/** The text of the module that exports these interfaces of the contract. */
export async function bundle(entry, interfaces, options) {
  const contents = [
    `import { settle, start } from ${JSON.stringify(path.join(here, "runtime.js"))};`,
    'import context from "guesthouse:mcp/context@0.1.0";',
    'import changes from "guesthouse:mcp/changes@0.1.0";',
    `import { exportsOf } from ${JSON.stringify(path.join(here, "guest.js"))};`,
    `import server from ${JSON.stringify(path.resolve(entry))};`,
    "const all = exportsOf(server, { context, changes }, { settle, start });",
    ...interfaces.map((name) => `export const ${name} = all.${name};`),
  ].join("\n");
  const stdin = { contents, resolveDir: process.cwd(), sourcefile: "guest.js" };
  const { outputFiles } = await run({ stdin, write: false, supported: lowered, ...options });
  return outputFiles[0].text;
}

// The engine's own async functions would use its own promises, whose jobs run too late (see src/promise.js).
const lowered = { "async-await": false, "async-generator": false, "for-await": false, "top-level-await": false };

/** Runs the bundler; what it has to say reaches the author. */
export async function run(options) {
  try {
    return await esbuild.build({
      bundle: true,
      format: "esm",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["module", "import"],
      target: "es2023",
      loader: { ".txt": "text", ".md": "text" },
      external: ["guesthouse:*", "wasi:*"],
      // One class for each error, however the author's and the guest's copy of the SDK were found.
      alias: { "@guesthouse/sdk": path.join(here, "index.js") },
      logLevel: "warning",
      logOverride: { "ignored-bare-import": "silent" },
      ...options,
    });
  } catch (error) {
    if (!error.errors) throw error;
    const usesNode = error.errors.some(({ text }) => text.startsWith('Could not resolve "node:'));
    throw new BuildError(
      usesNode ? "a guest runs without Node, so that modules of node: cannot be imported" : "the modules cannot be bundled, see above",
    );
  }
}
