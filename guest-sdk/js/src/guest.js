// The component's exports: the contract's interfaces on one side, a server's handlers on the other.

import { complete, callTool, getPrompt, interfacesOf, jsonSchema, messageOf, readResource } from "./handlers.js";
import { GuestError } from "./index.js";

/**
 * Makes the objects that a component exports. `imports` are the contract's context and changes, `settle` runs an async
 * function to its end, and `start` is called before anything else runs in an instance.
 */
export function exportsOf(server, imports, { settle, start }) {
  const now = (callback) => {
    start();
    try {
      return callback();
    } catch (error) {
      throw failure(error);
    }
  };
  const run = (callback) => now(() => settle(() => callback(contextOf(imports))));
  const all = {
    lifecycle: lifecycle(server, run, now),
    tools: tools(server, run, now),
    resources: resources(server, run, now),
    prompts: prompts(server, run, now),
    completion: completion(server, run),
  };
  return Object.fromEntries(interfacesOf(server).map((name) => [name, all[name]]));
}

function lifecycle(server, run, now) {
  return {
    describe: () =>
      now(() => ({
        name: server.name,
        version: server.version,
        title: server.title ?? null,
        description: server.description ?? null,
        websiteUrl: server.websiteUrl ?? null,
        icons: icons(server.icons),
        instructions: server.instructions ?? null,
        more: null,
      })),
    init(config) {
      try {
        if (server.init) run((ctx) => server.init(JSON.parse(config), ctx));
      } catch (error) {
        throw String(error.val?.message ?? error.val);
      }
    },
  };
}

function tools(server, run, now) {
  return {
    listTools: () =>
      now(() => ({
        tools: Object.entries(server.tools).map(([name, tool]) => ({
          ...common(tool),
          name,
          inputSchema: JSON.stringify(jsonSchema(tool.input, "input") ?? { type: "object", additionalProperties: false }),
          outputSchema: json(jsonSchema(tool.output, "output")),
          annotations: toolAnnotations(tool.annotations),
          taskSupport: tool.taskSupport ?? "forbidden",
        })),
        next: null,
        cache: null,
      })),
    callTool: (name, args) =>
      run(async (ctx) => {
        const { content, structured, isError, meta } = await callTool(server, name, JSON.parse(args), ctx);
        return {
          tag: "complete",
          val: { content: content.map(block), structuredContent: json(structured), isError, meta: json(meta), more: null },
        };
      }),
  };
}

function resources(server, run, now) {
  const described = (entry) => ({ ...common(entry), mimeType: entry.mimeType ?? null, annotations: annotations(entry.annotations) });
  return {
    listResources: () =>
      now(() => ({
        resources: Object.entries(server.resources ?? {}).map(([uri, entry]) => ({
          ...described(entry),
          uri,
          name: entry.name ?? uri,
          size: entry.size ?? null,
        })),
        next: null,
        cache: null,
      })),
    listTemplates: () =>
      now(() => ({
        templates: Object.entries(server.templates ?? {}).map(([uriTemplate, entry]) => ({
          ...described(entry),
          uriTemplate,
          name: entry.name ?? uriTemplate,
        })),
        next: null,
        cache: null,
      })),
    readResource: (uri) =>
      run(async (ctx) => ({
        tag: "complete",
        val: { contents: (await readResource(server, uri, ctx)).map(resourceContents), cache: null, meta: null },
      })),
  };
}

function prompts(server, run, now) {
  return {
    listPrompts: () =>
      now(() => ({
        prompts: Object.entries(server.prompts).map(([name, prompt]) => ({
          ...common(prompt),
          name,
          arguments: Object.entries(prompt.arguments ?? {}).map(([argument, { title, description, required }]) => ({
            name: argument,
            title: title ?? null,
            description: description ?? null,
            required: required === true,
          })),
        })),
        next: null,
        cache: null,
      })),
    getPrompt: (name, args) =>
      run(async (ctx) => {
        const { description, messages } = await getPrompt(server, name, Object.fromEntries(args), ctx);
        return {
          tag: "complete",
          val: {
            description: description ?? null,
            messages: messages.map(({ role, content }) => ({ role, content: block(content) })),
            meta: null,
          },
        };
      }),
  };
}

function completion(server, run) {
  return {
    complete: (reference, argument, value, resolved) =>
      run(async (ctx) => {
        const values = await complete(server, reference, argument, value, Object.fromEntries(resolved), ctx);
        return { values, total: values.length, hasMore: false };
      }),
  };
}

/** What a handler is given to speak to the host. */
export function contextOf({ context, changes }) {
  let asked;
  const log = (level, data, logger = null) => context.log(level, logger, JSON.stringify(data ?? null));
  return {
    get request() {
      return (asked ??= requestOf(context.request()));
    },
    progress(done, total = null, message = null) {
      try {
        context.reportProgress(done, total, message);
        return true;
      } catch {
        // Nobody asked for progress, or nobody is there any more: no reason to stop working.
        return false;
      }
    },
    log,
    timeLeftMs: () => context.timeLeftMs(),
    toolsChanged: () => changes.toolsChanged(),
    promptsChanged: () => changes.promptsChanged(),
    resourcesChanged: () => changes.resourcesChanged(),
    resourceUpdated: (uri) => changes.resourceUpdated(uri),
  };
}

function requestOf(info) {
  if (!info) return undefined;
  const parsed = (text) => (text === null ? undefined : JSON.parse(text));
  const known = Object.fromEntries(Object.entries(info).map(([name, value]) => [name, value ?? undefined]));
  return {
    ...known,
    clientInfo: parsed(info.clientInfo),
    clientCapabilities: parsed(info.clientCapabilities),
    meta: parsed(info.meta),
    more: parsed(info.more),
  };
}

function failure(error) {
  if (!(error instanceof GuestError)) return { tag: "internal", val: messageOf(error) };
  switch (error.kind) {
    case "rpc":
      return { tag: "rpc", val: { code: error.detail.code, message: error.message, data: json(error.detail.data) } };
    case "missing-client-capability":
      return { tag: error.kind, val: JSON.stringify(error.detail ?? {}) };
    default:
      return { tag: error.kind, val: error.message };
  }
}

function block(content) {
  if (typeof content === "string") return block({ type: "text", text: content });
  const hints = { annotations: annotations(content.annotations), meta: json(content.meta) };
  switch (content.type) {
    case "text":
      return { tag: "text", val: { text: content.text, ...hints } };
    case "image":
    case "audio":
      return { tag: content.type, val: { data: content.data, mimeType: content.mimeType, ...hints } };
    case "resource_link": {
      const { uri, name, mimeType, size } = content;
      return { tag: "resource-link", val: { ...common(content), uri, name, mimeType: mimeType ?? null, size: size ?? null, ...hints } };
    }
    case "resource":
      return { tag: "embedded-resource", val: { contents: resourceContents(content.resource), ...hints } };
    default:
      throw new TypeError(`"${content.type}" is no type of content; use text, image, audio, resource_link or resource`);
  }
}

function resourceContents({ uri, mimeType, text, blob, meta }) {
  const body = blob === undefined ? { tag: "text", val: text } : { tag: "blob", val: blob };
  return { uri, mimeType: mimeType ?? null, body, meta: json(meta) };
}

function common({ title, description, icons: pictures, meta }) {
  return { title: title ?? null, description: description ?? null, icons: icons(pictures), meta: json(meta), more: null };
}

function icons(list) {
  return (list ?? []).map(({ src, mimeType, sizes, theme }) => ({
    src,
    mimeType: mimeType ?? null,
    sizes: sizes ?? [],
    theme: theme ?? null,
  }));
}

function annotations(hints) {
  if (!hints) return null;
  return { audience: hints.audience ?? [], priority: hints.priority ?? null, lastModified: hints.lastModified ?? null };
}

function toolAnnotations(hints) {
  if (!hints) return null;
  const { title, readOnly, destructive, idempotent, openWorld } = hints;
  return {
    title: title ?? null,
    readOnly: readOnly ?? null,
    destructive: destructive ?? null,
    idempotent: idempotent ?? null,
    openWorld: openWorld ?? null,
  };
}

function json(value) {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
