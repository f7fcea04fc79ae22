/** Types of @guesthouse/sdk. */

/** A JSON Schema, or a schema of a library that can describe and check itself (Standard Schema with JSON Schema), such as zod's. */
export type Schema = JsonSchema | StandardSchema<any, any>;

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: { readonly [name: string]: JsonSchema | boolean };
  readonly required?: readonly string[];
  readonly items?: JsonSchema | boolean;
  readonly enum?: readonly unknown[];
  readonly [keyword: string]: unknown;
}

/** The part of Standard Schema that is used. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: any) => unknown;
  };
}

/** The type of the values that a schema describes, as far as its keywords tell. */
export type ValueOf<S> =
  S extends StandardSchema<any, infer Output>
    ? Output
    : S extends { readonly enum: readonly (infer Value)[] }
      ? Value
      : S extends { readonly type: "string" }
        ? string
        : S extends { readonly type: "number" | "integer" }
          ? number
          : S extends { readonly type: "boolean" }
            ? boolean
            : S extends { readonly type: "array"; readonly items: infer Items }
              ? ValueOf<Items>[]
              : S extends { readonly type: "object"; readonly properties: infer Properties }
                ? ObjectOf<Properties, S extends { readonly required: readonly (infer Name)[] } ? Name : never>
                : any;

type ObjectOf<Properties, Required> = Flat<
  { -readonly [Name in keyof Properties as Name extends Required ? Name : never]: ValueOf<Properties[Name]> } & {
    -readonly [Name in keyof Properties as Name extends Required ? never : Name]?: ValueOf<Properties[Name]>;
  }
>;

type Flat<T> = { [Name in keyof T]: T[Name] };

type Awaitable<T> = T | Promise<T>;

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What is known of the request that a handler serves. */
export interface Request {
  /** The host's name for this call, as in its logs. */
  id: string;
  protocolVersion: string;
  clientInfo?: { name: string; version: string; [more: string]: unknown };
  clientCapabilities: Record<string, unknown>;
  meta?: Record<string, unknown>;
  traceparent?: string;
  /** Caller and tenant, as the host verified them. */
  principal?: string;
  tenant?: string;
  /** Only for clients of the handshake revisions. */
  session?: string;
  wantsProgress: boolean;
  retry: boolean;
  more?: Record<string, unknown>;
}

/** What a handler is given to speak to the host. */
export interface Context {
  /** Asked for when it is first looked at. */
  readonly request: Request | undefined;
  /** Tells the client how far the call has come; false when nobody is listening, or the value did not increase. */
  progress(done: number, total?: number, message?: string): boolean;
  /** Sends JSON to the client's log, if it asked for messages of that level. For the host's log, use console. */
  log(level: LogLevel, data: unknown, logger?: string): void;
  timeLeftMs(): number;
  /** Changes are told to clients when the call has succeeded. */
  toolsChanged(): void;
  promptsChanged(): void;
  resourcesChanged(): void;
  resourceUpdated(uri: string): void;
}

export interface Icon {
  src: string;
  mimeType?: string;
  sizes?: readonly string[];
  theme?: "light" | "dark";
}

export interface Annotations {
  audience?: readonly ("user" | "assistant")[];
  /** From 0 (least) to 1 (most important). */
  priority?: number;
  /** ISO 8601. */
  lastModified?: string;
}

interface Common {
  title?: string;
  description?: string;
  icons?: readonly Icon[];
  meta?: Record<string, unknown>;
}

interface Hints {
  annotations?: Annotations;
  meta?: Record<string, unknown>;
}

export type Content =
  | ({ type: "text"; text: string } & Hints)
  | ({ type: "image" | "audio"; data: Uint8Array; mimeType: string } & Hints)
  | ({ type: "resource_link"; uri: string; name: string; mimeType?: string; size?: number } & Common & Hints)
  | ({ type: "resource"; resource: ResourceContents } & Hints);

export interface ResourceContents {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: Uint8Array;
  meta?: Record<string, unknown>;
}

export interface ResultParts {
  /** Short for content with this one text. */
  text?: string;
  content?: readonly (Content | string)[];
  structured?: unknown;
  isError?: boolean;
  meta?: Record<string, unknown>;
}

/** What a tool gives when a text or a plain value does not say it all. */
export class ToolResult {
  constructor(parts?: ResultParts);
  readonly content: readonly any[];
  readonly structured: any;
  readonly isError: boolean;
  readonly meta?: Record<string, unknown>;
}

/** Short for a new ToolResult. */
export function result(parts: ResultParts): ToolResult;

export interface ToolAnnotations {
  title?: string;
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
}

export interface Tool<Input extends Schema = Schema> extends Common {
  /** Arguments are checked against it before run is called. Left out, the tool takes none. */
  input?: Input;
  /** Left out, a result need not be structured. */
  output?: Schema;
  annotations?: ToolAnnotations;
  /** Whether the host may run a call as a task. */
  taskSupport?: "forbidden" | "optional" | "required";
  /**
   * Gives a text, a ToolResult, nothing, or any other value, which becomes structured output with its JSON as text.
   * What it throws becomes a result that the model can read, unless it is a GuestError.
   */
  run(args: ValueOf<Input>, ctx: Context): unknown;
}

/** A resource's contents: a text, bytes, contents with more to say, or a value to be written as JSON. */
export type Readable = string | Uint8Array | ResourceContents | readonly (string | Uint8Array | ResourceContents)[] | object;

export interface Resource extends Common {
  /** The URI, if not given. */
  name?: string;
  mimeType?: string;
  /** In bytes. */
  size?: number;
  annotations?: Annotations;
  read(ctx: Context): Awaitable<Readable>;
}

/** Values that begin with what was typed are proposed; a function proposes what it likes. */
export type Completer =
  readonly string[] | ((typed: string, more: { resolved: Record<string, string>; ctx: Context }) => Awaitable<Iterable<string>>);

/** The variables of a URI template. */
export type VariablesOf<Template extends string> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? { [Key in Name extends `+${infer Bare}` ? Bare : Name]: string } & VariablesOf<Rest>
  : {};

export interface Template<URI extends string = string> extends Common {
  name?: string;
  mimeType?: string;
  annotations?: Annotations;
  complete?: Record<string, Completer>;
  /** Is given the variables percent-decoded: {name} is one path segment, {+name} may be more. */
  read(variables: string extends URI ? Record<string, string> : VariablesOf<URI>, ctx: Context): Awaitable<Readable>;
}

export interface PromptMessage {
  role: "user" | "assistant";
  content: Content | string;
}

export interface Prompt extends Common {
  arguments?: Record<string, { title?: string; description?: string; required?: boolean }>;
  complete?: Record<string, Completer>;
  /** Gives one text of the user's, messages, or messages with a description. */
  render(
    args: any,
    ctx: Context,
  ): Awaitable<
    string | PromptMessage | readonly (PromptMessage | string)[] | { description?: string; messages: readonly (PromptMessage | string)[] }
  >;
}

export interface Definition<Templates> {
  name: string;
  version: string;
  title?: string;
  description?: string;
  websiteUrl?: string;
  icons?: readonly Icon[];
  /** Guidance for the model. */
  instructions?: string;
  /** Is given the operator's configuration of this guest on every new instance. What it throws keeps the guest from starting. */
  init?(config: any, ctx: Context): unknown;
  /** By name. Wrapped in tool(), their arguments have the types of their schemas. */
  tools?: Record<string, Tool<any>>;
  /** By URI. */
  resources?: Record<string, Resource>;
  /** By URI template. */
  templates?: { [URI in keyof Templates]: Template<URI & string> };
  /** By name. */
  prompts?: Record<string, Prompt>;
}

/** A declared server; the default export of a guest's entry module. */
export interface Server {
  readonly name: string;
  readonly version: string;
}

/** Declares a server. Make it the default export of the entry module. */
export function defineServer<Templates extends Record<string, unknown>>(definition: Definition<Templates>): Server;

/** Gives its argument back; TypeScript then knows the types of run's arguments. */
export function tool<const Input extends Schema>(definition: Tool<Input>): Tool<Input>;

/** Whether a value is what defineServer gave. */
export function isServer(value: unknown): value is Server;

/** A message of a prompt that the user says. */
export function user(content: Content | string): PromptMessage;

/** A message of a prompt that the model says. */
export function assistant(content: Content | string): PromptMessage;

/** A failure with a meaning in the protocol. Any other error of a tool becomes a result that the model can read. */
export abstract class GuestError extends Error {
  readonly kind: string;
  readonly detail?: unknown;
}

/** There is no such thing. Without a name, it is the thing that was asked for. */
export class NotFound extends GuestError {
  constructor(name?: string);
}

/** The arguments are wrong; the client gets to read why. */
export class InvalidParams extends GuestError {
  constructor(message: string);
}

/** The client lacks these capabilities, which are given as a ClientCapabilities object. */
export class MissingCapability extends GuestError {
  constructor(capabilities: Record<string, unknown>);
}

/** The fault is ours; the text goes to the log, never to the client. */
export class InternalError extends GuestError {
  constructor(message: string);
}

/** An error with a JSON-RPC code of the handler's own. */
export class ProtocolError extends GuestError {
  constructor(code: number, message: string, data?: unknown);
}
