// Runs a server's handlers and turns what they give into plain values of one shape. Used by the component's exports and by
// tests alike; knows nothing of the component model.

import { GuestError, InvalidParams, NotFound, ToolResult } from "./index.js";
import { parseTemplate } from "./template.js";

/** The names of the contract's interfaces that a server has something to say to. */
export function interfacesOf(server) {
  const has = (section) => Object.keys(section ?? {}).length > 0;
  const completes = [...Object.values(server.prompts ?? {}), ...Object.values(server.templates ?? {})].some((entry) => has(entry.complete));
  const interfaces = ["lifecycle"];
  if (has(server.tools)) interfaces.push("tools");
  if (has(server.resources) || has(server.templates)) interfaces.push("resources");
  if (has(server.prompts)) interfaces.push("prompts");
  if (completes) interfaces.push("completion");
  return interfaces;
}

/** The JSON Schema of an input or output, which may be a schema of a library that can describe itself (Standard JSON Schema). */
export function jsonSchema(schema, direction) {
  const describe = schema?.["~standard"]?.jsonSchema?.[direction];
  return describe ? describe({ target: "draft-2020-12" }) : schema;
}

/** Runs a tool. Throws a GuestError; every other failure is a result that the model can read. */
export async function callTool(server, name, args, ctx) {
  const tool = own(server.tools, name);
  if (!tool) throw new NotFound(name);
  try {
    return toolResult(await tool.run(await validated(tool.input, args), ctx));
  } catch (error) {
    if (error instanceof GuestError) throw named(error, name);
    return new ToolResult({ text: messageOf(error), isError: true });
  }
}

/** Reads a resource: the one with that URI, or else through the first template that it fits. */
export async function readResource(server, uri, ctx) {
  const resource = own(server.resources, uri);
  if (resource) return contents(uri, resource, await naming(uri, () => resource.read(ctx)));
  for (const [template, entry] of Object.entries(server.templates ?? {})) {
    const variables = parseTemplate(template).match(uri);
    if (variables) return contents(uri, entry, await naming(uri, () => entry.read(variables, ctx)));
  }
  throw new NotFound(uri);
}

/** Renders a prompt. */
export async function getPrompt(server, name, args, ctx) {
  const prompt = own(server.prompts, name);
  if (!prompt) throw new NotFound(name);
  for (const [argument, { required }] of Object.entries(prompt.arguments ?? {})) {
    if (required && args[argument] === undefined) throw new InvalidParams(`${argument} is required`);
  }
  const rendered = await naming(name, () => prompt.render(args, ctx));
  const { description = prompt.description, messages } = Array.isArray(rendered?.messages) ? rendered : { messages: rendered };
  const list = Array.isArray(messages) ? messages : [messages];
  return { description, messages: list.map((message) => (typeof message === "string" ? { role: "user", content: message } : message)) };
}

/** Proposes values for an argument of a prompt or a variable of a template. */
export async function complete(server, reference, argument, typed, resolved, ctx) {
  const entry = own(reference.tag === "prompt" ? server.prompts : server.templates, reference.val);
  if (!entry) throw new NotFound(reference.val);
  const completer = own(entry.complete, argument);
  if (typeof completer === "function") return [...(await naming(reference.val, () => completer(typed, { resolved, ctx })))];
  const start = asciiLower(typed);
  return [...(completer ?? [])].filter((value) => asciiLower(value).startsWith(start));
}

// Only what the author declared: an object's inherited members, such as "constructor", are no tools.
function own(section, name) {
  return section && Object.hasOwn(section, name) ? section[name] : undefined;
}

async function validated(schema, args) {
  const validate = schema?.["~standard"]?.validate;
  if (!validate) return args;
  const outcome = await validate(args);
  if (!outcome.issues) return outcome.value;
  const path = (issue) => (issue.path ?? []).map((step) => `/${typeof step === "object" ? step.key : step}`).join("");
  throw new InvalidParams(outcome.issues.map((issue) => `${path(issue) || "/"}: ${issue.message}`).join("; "));
}

async function naming(name, run) {
  try {
    return await run();
  } catch (error) {
    throw named(error, name);
  }
}

function named(error, name) {
  return error instanceof NotFound && error.detail === undefined ? new NotFound(name) : error;
}

/** The text of whatever was thrown. */
export function messageOf(error) {
  const message = error instanceof Error ? error.message : error;
  return typeof message === "string" && message !== "" ? message : String(error);
}

function toolResult(value) {
  if (value instanceof ToolResult) return value;
  if (value === undefined || value === null) return new ToolResult();
  if (typeof value === "string") return new ToolResult({ text: value });
  return new ToolResult({ text: JSON.stringify(value), structured: value });
}

function contents(uri, { mimeType }, value) {
  const list = Array.isArray(value) ? value : [value];
  return list.map((one) => {
    if (typeof one === "string") return { uri, mimeType: mimeType ?? "text/plain", text: one };
    if (one instanceof Uint8Array) return { uri, mimeType: mimeType ?? "application/octet-stream", blob: one };
    if (typeof one?.text === "string" || one?.blob instanceof Uint8Array) return { uri, mimeType, ...one };
    return { uri, mimeType: mimeType ?? "application/json", text: JSON.stringify(one) };
  });
}

function asciiLower(text) {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
