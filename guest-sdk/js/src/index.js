// What authors import: defineServer, results, messages and errors. Nothing here needs a host, so that handlers run in plain
// Node as they do in a guest.

const serverMark = Symbol.for("guesthouse.server");

/** Declares a server. Make it the default export of the entry module. */
export function defineServer(definition) {
  for (const field of ["name", "version"]) {
    if (typeof definition?.[field] !== "string" || definition[field] === "") {
      throw new TypeError(`defineServer: ${field} must be a text`);
    }
  }
  check(definition.tools, "tool", "run");
  check(definition.resources, "resource", "read");
  check(definition.templates, "template", "read");
  check(definition.prompts, "prompt", "render");
  return Object.freeze({ ...definition, [serverMark]: true });
}

/** Whether a value is what defineServer gave, be it of this copy of the SDK or another. */
export function isServer(value) {
  return value?.[serverMark] === true;
}

function check(section, kind, handler) {
  for (const [name, entry] of Object.entries(section ?? {})) {
    if (typeof entry?.[handler] !== "function") {
      throw new TypeError(`defineServer: ${kind} "${name}" needs a function ${handler}`);
    }
  }
}

/** Gives its argument back, for the sake of types. */
export const tool = (definition) => definition;

/** What a tool gives when a text or a plain value does not say it all. */
export class ToolResult {
  constructor({ text, content, structured, isError = false, meta } = {}) {
    this.content = content ?? (text === undefined ? [] : [{ type: "text", text }]);
    this.structured = structured;
    this.isError = isError;
    this.meta = meta;
  }
}

/** Short for a new ToolResult. */
export const result = (parts) => new ToolResult(parts);

/** A message of a prompt that the user says. */
export const user = (content) => ({ role: "user", content });

/** A message of a prompt that the model says. */
export const assistant = (content) => ({ role: "assistant", content });

/** A failure with a meaning in the protocol. Any other error of a tool becomes a result that the model can read. */
export class GuestError extends Error {
  constructor(kind, message, detail) {
    super(message);
    this.name = new.target.name;
    this.kind = kind;
    this.detail = detail;
  }
}

/** There is no such thing. Without a name, it is the thing that was asked for. */
export class NotFound extends GuestError {
  constructor(name) {
    super("not-found", name === undefined ? "not found" : String(name), name);
  }
}

/** The arguments are wrong; the client gets to read why. */
export class InvalidParams extends GuestError {
  constructor(message) {
    super("invalid-params", message);
  }
}

/** The client lacks these capabilities, which are given as a ClientCapabilities object. */
export class MissingCapability extends GuestError {
  constructor(capabilities) {
    super("missing-client-capability", "the client lacks a capability", capabilities);
  }
}

/** The fault is ours; the text goes to the log, never to the client. */
export class InternalError extends GuestError {
  constructor(message) {
    super("internal", message);
  }
}

/** An error with a JSON-RPC code of the handler's own. */
export class ProtocolError extends GuestError {
  constructor(code, message, data) {
    super("rpc", message, { code, data });
  }
}
