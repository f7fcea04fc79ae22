// Turns a project into a component: node build.js --entry FILE --wit DIR --out FILE. Started by `guesthouse build`, in the
// project's folder; DIR holds the contract and the WASI interfaces that a guest's runtime needs, and gets the guest's world.

import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { componentize } from "componentize-qjs";
import { BuildError, bundle, run } from "./src/bundle.js";
import { interfacesOf } from "./src/handlers.js";
import { isServer } from "./src/index.js";
import { parseTemplate } from "./src/template.js";

const contract = "guesthouse:mcp@0.1.0";
const wasi = ["wasi:random/random@0.2.12", "wasi:cli/stderr@0.2.12", "wasi:clocks/monotonic-clock@0.2.12"];

async function build({ entry, wit, out }) {
  const tools = await readFile(path.join(wit, "tools.wit"), "utf8");
  if (!tools.includes(`package ${contract};`)) {
    throw new BuildError(
      `this release of @guesthouse/sdk is for ${contract}, and the host has ${/package ([^;]*);/.exec(tools)?.[1]}; use the release that belongs to it`,
    );
  }
  const server = await load(entry, out);
  for (const template of Object.keys(server.templates ?? {})) parseTemplate(template);
  const interfaces = interfacesOf(server);
  const lines = [...["context", "changes", ...wasi].map((name) => `  import ${name};`), ...interfaces.map((name) => `  export ${name};`)];
  await writeFile(path.join(wit, "guest.wit"), `package ${contract};\n\nworld js-guest {\n${lines.join("\n")}\n}\n`);
  const jsSource = await bundle(entry, interfaces);
  await writeFile(out, await compile({ witPath: wit, jsSource, world: "js-guest", sync: true }));
}

// Runs the modules in the guest's engine, and takes a snapshot of it.
async function compile(options) {
  try {
    return (await componentize(options)).component;
  } catch (error) {
    throw new BuildError(error.message.replace(/^: |Failed to (evaluate|finish)[^:]*: /g, "").trim());
  }
}

// Runs the author's modules here in Node, to see which parts the server has.
async function load(entry, out) {
  const file = `${out}.${process.pid}.mjs`;
  await run({ entryPoints: [entry], outfile: file, sourcemap: "inline", banner: { js: nodeRequire } });
  try {
    const { default: server } = await import(pathToFileURL(file));
    if (!isServer(server)) throw new BuildError(`${entry} must have the result of defineServer as its default export`);
    return server;
  } finally {
    await rm(file, { force: true });
  }
}

process.setSourceMapsEnabled(true);
const nodeRequire = 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';

try {
  const { values } = parseArgs({ options: { entry: { type: "string" }, wit: { type: "string" }, out: { type: "string" } } });
  await build(values);
} catch (error) {
  console.error(error instanceof BuildError ? error.message : error);
  process.exitCode = 1;
}
