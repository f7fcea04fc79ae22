// Calls a server's handlers in plain Node, without a host or a component.

import { callTool, complete, getPrompt, readResource } from "./handlers.js";

/** A stand-in for a client. What handlers report is kept in `progress`, `logs` and `changes`. */
export function testClient(server, request) {
  const progress = [];
  const logs = [];
  const changes = [];
  const ctx = {
    request,
    progress: (done, total, message) => progress.push({ done, total, message }) > 0,
    log: (level, data, logger) => void logs.push({ level, data, logger }),
    timeLeftMs: () => 30_000,
    toolsChanged: () => void changes.push("tools"),
    promptsChanged: () => void changes.push("prompts"),
    resourcesChanged: () => void changes.push("resources"),
    resourceUpdated: (uri) => void changes.push(uri),
  };
  return {
    progress,
    logs,
    changes,
    callTool: (name, args = {}) => callTool(server, name, args, ctx),
    readResource: (uri) => readResource(server, uri, ctx),
    getPrompt: (name, args = {}) => getPrompt(server, name, args, ctx),
    complete: ({ prompt, template }, argument, typed, resolved = {}) =>
      complete(
        server,
        prompt === undefined ? { tag: "resource-template", val: template } : { tag: "prompt", val: prompt },
        argument,
        typed,
        resolved,
        ctx,
      ),
  };
}
