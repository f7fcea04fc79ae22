/** Calls a server's handlers in plain Node, without a host or a component. */

import type { LogLevel, PromptMessage, Request, ResourceContents, Server, ToolResult } from "./index.js";

/** A stand-in for a client; handlers' errors with a meaning are thrown. */
export interface TestClient {
  readonly progress: { done: number; total?: number; message?: string }[];
  readonly logs: { level: LogLevel; data: unknown; logger?: string }[];
  /** The lists ("tools", "prompts", "resources") and the URIs that were said to have changed. */
  readonly changes: string[];
  callTool(name: string, args?: object): Promise<ToolResult>;
  readResource(uri: string): Promise<ResourceContents[]>;
  getPrompt(name: string, args?: Record<string, string>): Promise<{ description?: string; messages: PromptMessage[] }>;
  complete(
    of: { prompt: string } | { template: string },
    argument: string,
    typed: string,
    resolved?: Record<string, string>,
  ): Promise<string[]>;
}

export function testClient(server: Server, request?: Request): TestClient;
