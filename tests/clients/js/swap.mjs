// The official TypeScript client while versions of a guest come and go.
//
//   node swap.mjs --url http://…/mcp --file WATCHED --same COMPONENT --other COMPONENT --tool NAME
//
// Copies SAME, a build with the same lists, and then OTHER, which has the tool NAME besides, to the file that the host watches.
// Each client, one of each era, must hear of exactly one change, and then find the tool, without having been disconnected.

import assert from 'node:assert/strict';
import { copyFileSync, renameSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const CHANGE_MS_MAX = 20_000;
// A second change, if there were one, would follow the first at once.
const MORE_MS = 500;

const { values: flags } = parseArgs({
    options: { url: { type: 'string' }, file: { type: 'string' }, same: { type: 'string' }, other: { type: 'string' }, tool: { type: 'string' } },
});

function replace(component) {
    copyFileSync(component, `${flags.file}.new`);
    renameSync(`${flags.file}.new`, flags.file);
}

async function until(done, what) {
    for (const end = Date.now() + CHANGE_MS_MAX; !done(); await pause(10)) assert.ok(Date.now() < end, `${what} does not happen`);
}

async function connect(era, options) {
    const heard = [];
    const onChanged = (error, tools) => heard.push(error ?? tools.map((tool) => tool.name));
    const client = new Client({ name: 'guesthouse-js-swap', version: '0.0.0' }, { ...options, listChanged: { tools: { onChanged, debounceMs: 0 } } });
    const closed = [];
    client.onclose = () => closed.push('closed');
    await client.connect(new StreamableHTTPClientTransport(new URL(flags.url)));
    return { era, client, heard, closed };
}

const clients = [
    await connect('2026-07-28', { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    await connect('2025-11-25', { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: ['2025-11-25'] }),
];
const before = clients[0].client.getServerVersion()?.version;
assert.ok(before, 'the server says its version');
// The stream of a session's changes is opened after the connection.
await pause(MORE_MS);
replace(flags.same);
await pause(MORE_MS * 2);
for (const { era, heard } of clients) assert.deepEqual(heard, [], `${era} hears of a change where there is none`);
replace(flags.other);
for (const { era, heard } of clients) await until(() => heard.length > 0, `${era}: a change`);
await pause(MORE_MS);
for (const { era, client, heard, closed } of clients) {
    assert.equal(heard.length, 1, `${era} hears of ${heard.length} changes`);
    assert.ok(heard[0].includes?.(flags.tool), `${era}: ${flags.tool} is not among ${heard[0]}`);
    assert.ok((await client.listTools()).tools.some((tool) => tool.name === flags.tool));
    assert.deepEqual(closed, []);
    console.log(`ok ${era}: one change, and then the new list`);
    await client.close();
}
