// The official TypeScript client against a running host that serves the textkit samples.
//
//   node check.mjs --guest rust-textkit [--guest go-textkit …] [--prefixed] [--verbose] --revision 2026-07-28 [--revision …] --url http://…
//   node check.mjs …                                                                              -- command argument…   (stdio)
//
// One connection per revision. `2026-07-28` pins the modern era, `auto` lets the client find it, a revision of the handshake
// era is the only one that the client then offers. What a textkit answers is in ../textkit.json, which the Rust client shares.
// With --notifications the host serves the conformance guest, and only progress and log messages are checked.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const MODERN = '2026-07-28';
const REQUEST_MS_MAX = 20_000;
const PARALLEL_CALLS = 24;
// The client itself waits two seconds for its child before it sends a signal: a child that ends by itself is much faster.
const CHILD_END_MS_MAX = 1_500;
const repository = new URL('../../../', import.meta.url);
const table = JSON.parse(readFileSync(new URL('../textkit.json', import.meta.url), 'utf8'));

const { values: flags, positionals: command } = parseArgs({
    options: {
        url: { type: 'string' },
        guest: { type: 'string', multiple: true },
        revision: { type: 'string', multiple: true },
        prefixed: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        notifications: { type: 'boolean', default: false },
    },
    allowPositionals: true,
});
if (!flags.guest || !flags.revision || Boolean(flags.url) === command.length > 0) {
    console.error('usage: check.mjs --guest NAME… [--prefixed] [--verbose] [--notifications] --revision REVISION… (--url URL | -- COMMAND ARGUMENT…)');
    process.exit(2);
}

/** What a revision knows of an object; the host drops the rest for older clients. */
function known(revision, entry) {
    const { title, outputSchema, annotations, ...rest } = entry;
    const since = (first, members) => Object.fromEntries(Object.entries(members).filter(([, value]) => revision >= first && value !== undefined));
    return { ...rest, ...since('2025-03-26', { annotations }), ...since('2025-06-18', { title, outputSchema }) };
}

/** The members of a listed object that the table speaks of; the others (`_meta`, `icons`, `execution`) are the host's business. */
function described(entry) {
    const { name, title, description, inputSchema, outputSchema, annotations, uri, uriTemplate, mimeType } = entry;
    const picked = { name, title, description, inputSchema, outputSchema, annotations, uri, uriTemplate, mimeType };
    const members = Object.fromEntries(Object.entries(picked).filter(([, value]) => value !== undefined));
    // `required: false` and its absence mean the same.
    const named = entry.arguments?.map(({ required, ...argument }) => (required ? { ...argument, required } : argument));
    return named ? { ...members, arguments: named } : members;
}

function only(items) {
    assert.equal(items.length, 1, `one item expected, not ${JSON.stringify(items)}`);
    return items[0];
}

async function refused(promise) {
    let answer;
    try {
        answer = await promise;
    } catch (error) {
        return error;
    }
    assert.fail(`an error expected, not ${JSON.stringify(answer)}`);
}

let failures = 0;

async function check(what, body) {
    try {
        const note = await body();
        console.log(`ok    ${what}${note ? ` (${note})` : ''}`);
    } catch (error) {
        failures += 1;
        console.log(`FAIL  ${what}: ${String(error?.message ?? error).replaceAll('\n', '\n      ')}`);
    }
}

function transport() {
    if (flags.url) return new StreamableHTTPClientTransport(new URL(flags.url));
    const [program, ...args] = command;
    // The whole environment, as a desktop client's configuration would give it: the host finds its cache through it.
    return new StdioClientTransport({ command: program, args, env: { ...process.env }, stderr: flags.verbose ? 'inherit' : 'ignore' });
}

function options(asked) {
    if (asked === 'auto') return { versionNegotiation: { mode: 'auto' } };
    if (asked === MODERN) return { versionNegotiation: { mode: { pin: MODERN } } };
    return { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: [asked] };
}

async function connection(asked) {
    const client = new Client({ name: 'guesthouse-js-check', version: '0.0.0' }, options(asked));
    const errors = [];
    client.onerror = error => errors.push(error);
    console.log(`--    ${flags.url ?? command.join(' ')}, ${asked}`);
    let connected = false;
    await check('connects', async () => {
        await client.connect(transport(), { timeout: REQUEST_MS_MAX });
        connected = true;
        const era = asked === 'auto' || asked === MODERN ? 'modern' : 'legacy';
        assert.equal(client.getProtocolEra(), era);
        assert.equal(client.getNegotiatedProtocolVersion(), asked === 'auto' ? MODERN : asked);
    });
    if (!connected) return;
    const revision = client.getNegotiatedProtocolVersion();
    await (flags.notifications ? notifies(client, revision) : serves(client, revision));
    const started = performance.now();
    await check('closes without an error', async () => {
        await client.close();
        assert.deepEqual(errors.map(String), []);
    });
    if (flags.url) return;
    await check('ends when its input ends', () => assert.ok(performance.now() - started < CHILD_END_MS_MAX));
}

async function serves(client, revision) {
    await introduces(client, revision);
    await lists(client, revision);
    for (const guest of flags.guest) {
        await calls(client, revision, flags.prefixed ? `${guest}_` : '');
    }
    await reads(client);
    await endures(client, flags.prefixed ? `${flags.guest[0]}_` : '');
}

async function introduces(client, revision) {
    await check('says who it is', () => {
        const server = client.getServerVersion();
        const several = flags.guest.length > 1;
        assert.equal(server?.name, several ? 'guesthouse' : table.server.name);
        if (!several) assert.equal(server.version, table.server.version);
        if (!several && revision >= '2025-06-18') assert.equal(server.title, table.server.title);
        assert.ok(client.getInstructions()?.includes(table.server.instructions), `instructions: ${client.getInstructions()}`);
    });
    await check('offers what the guests export', () => {
        const offered = client.getServerCapabilities() ?? {};
        // `completions` came with 2025-03-26, and `logging` went with the handshake.
        const due = ['prompts', 'resources', 'tools'];
        if (revision >= '2025-03-26') due.push('completions');
        if (revision < MODERN) due.push('logging');
        assert.deepEqual(due.filter(name => !(name in offered)), [], `missing in ${JSON.stringify(offered)}`);
    });
    if (revision === MODERN) return;
    await check('answers a ping', async () => assert.deepEqual(await client.ping(), {}));
    await check('sets the level of the log', async () => assert.deepEqual(await client.setLoggingLevel('warning'), {}));
}

async function lists(client, revision) {
    const named = entries =>
        flags.guest.flatMap(guest => entries.map(entry => ({ ...entry, name: flags.prefixed ? `${guest}_${entry.name}` : entry.name })));
    const expected = entries => entries.map(entry => described(known(revision, entry)));
    await check('lists the tools with their schemas', async () => {
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map(described), expected(named(table.tools)));
    });
    await check('lists the prompts', async () => {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts.map(described), expected(named(table.prompts)));
    });
    // The guests have the same URIs: each is listed by every guest that has it, or once.
    const everyOf = async (entries, listed) => {
        const ways = [expected(entries), flags.guest.flatMap(() => expected(entries))];
        const got = listed.map(described);
        assert.deepEqual(got, got.length === entries.length ? ways[0] : ways[1]);
        return `${got.length}`;
    };
    await check('lists the resources', async () => everyOf(table.resources, (await client.listResources()).resources));
    await check('lists the templates', async () => everyOf(table.templates, (await client.listResourceTemplates()).resourceTemplates));
}

async function calls(client, revision, prefix) {
    for (const { tool, arguments: given, text, structured, isError } of table.calls) {
        await check(`calls ${prefix}${tool}${isError ? ', which says what is wrong' : ''}`, async () => {
            const result = await client.callTool({ name: prefix + tool, arguments: given });
            assert.equal(result.isError ?? false, isError ?? false, JSON.stringify(result));
            const [first, ...mirrored] = result.content;
            assert.deepEqual({ type: first.type, text: first.text }, { type: 'text', text });
            // Before structured content was invented, a client got it as a text more.
            const inText = structured && revision < '2025-06-18';
            assert.deepEqual(mirrored.map(block => JSON.parse(block.text)), inText ? [structured] : []);
            assert.deepEqual(result.structuredContent, inText ? undefined : structured);
        });
    }
    for (const { tool, arguments: given, names } of table.refused) {
        await check(`calls ${prefix}${tool} with ${JSON.stringify(given)} and learns of ${names}`, async () => {
            const result = await client.callTool({ name: prefix + tool, arguments: given });
            assert.equal(result.isError, true, JSON.stringify(result));
            assert.ok(only(result.content).text.includes(names), JSON.stringify(result.content));
        });
    }
    for (const { prompt, arguments: given, description, role, text } of table.gets) {
        await check(`gets ${prefix}${prompt} with ${Object.keys(given).join(' and ')}`, async () => {
            const got = await client.getPrompt({ name: prefix + prompt, arguments: given });
            assert.equal(got.description, description);
            const message = only(got.messages);
            assert.deepEqual([message.role, message.content.type, message.content.text], [role, 'text', text]);
        });
    }
    for (const { prompt, template, argument, value, values } of table.completions) {
        const ref = prompt ? { type: 'ref/prompt', name: prefix + prompt } : { type: 'ref/resource', uri: template };
        await check(`completes ${argument} of ${ref.name ?? ref.uri} from '${value}'`, async () => {
            const { completion } = await client.complete({ ref, argument: { name: argument, value } });
            assert.deepEqual(completion.values, values);
            assert.equal(completion.total ?? values.length, values.length);
            assert.equal(completion.hasMore ?? false, false);
        });
    }
}

async function reads(client) {
    for (const { uri, mimeType, text, file } of table.reads) {
        await check(`reads ${uri}`, async () => {
            const { contents } = await client.readResource({ uri });
            const { uri: from, mimeType: kind, text: got } = only(contents);
            const expected = text ?? readFileSync(new URL(file, repository), 'utf8');
            assert.deepEqual({ uri: from, mimeType: kind, text: got }, { uri, mimeType, text: expected });
        });
    }
    for (const uri of table.unknownResources) {
        await check(`is told that there is no ${uri}`, async () => {
            const error = await refused(client.readResource({ uri }));
            // The client shows the handshake era's -32002 as the modern -32602; the Rust client sees the difference.
            assert.equal(error.code, -32602, String(error));
            assert.equal(error.data?.uri, uri, JSON.stringify(error.data));
        });
    }
}

async function endures(client, prefix) {
    await check('is told of an unknown tool and an unknown prompt', async () => {
        assert.equal((await refused(client.callTool({ name: `${prefix}no_such_tool`, arguments: {} }))).code, -32602);
        assert.equal((await refused(client.getPrompt({ name: `${prefix}no_such_prompt` }))).code, -32602);
    });
    await check('accepts a progress token', async () => {
        const seen = [];
        const result = await client.callTool(
            { name: `${prefix}word_count`, arguments: { text: 'a b' } },
            { onprogress: ({ progress }) => seen.push(progress) },
        );
        assert.equal(result.content[0].text, '2 words');
        assert.deepEqual(seen, seen.toSorted((a, b) => a - b), 'progress goes up');
        return seen.length === 0 ? 'none was reported' : `${seen.length} reports`;
    });
    await check(`answers ${PARALLEL_CALLS} calls at once, each its own`, async () => {
        const given = Array.from({ length: PARALLEL_CALLS }, (_, index) => `Call ${index}`);
        const results = await Promise.all(given.map(text => client.callTool({ name: `${prefix}slugify`, arguments: { text } })));
        assert.deepEqual(results.map(result => only(result.content).text), given.map(text => text.toLowerCase().replace(' ', '-')));
    });
    await check('refuses an unknown cursor', async () => {
        assert.equal((await refused(client.listTools({ cursor: 'no-such-cursor' }))).code, -32602);
    });
}

async function notifies(client, revision) {
    // What arrives with the same read as a call's result is handled just after the call has returned. For the same reason the
    // client's own `onprogress` may lose a last report: it forgets the token with the result.
    const allHandled = () => new Promise(resolve => setImmediate(resolve));
    await check('is told of progress', async () => {
        const seen = [];
        client.setNotificationHandler('notifications/progress', ({ params }) => void seen.push(params));
        await client.callTool({ name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'a token' } });
        await allHandled();
        const messages = revision >= '2025-03-26' ? ['Started', 'Half done', 'Done'] : [undefined, undefined, undefined];
        const due = [0, 50, 100].map((progress, index) => ({ progress, total: 100, message: messages[index], progressToken: 'a token' }));
        assert.deepEqual(seen.map(({ progress, total, message, progressToken }) => ({ progress, total, message, progressToken })), due);
    });
    const logged = [];
    client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(`${params.level}: ${params.data}`));
    // The level is the session's in the handshake era, and each request's own in the modern era.
    const lines = async level => {
        logged.length = 0;
        const asked = revision === MODERN && level ? { _meta: { 'io.modelcontextprotocol/logLevel': level } } : {};
        if (revision !== MODERN) await client.setLoggingLevel(level);
        await client.callTool({ name: 'test_tool_with_logging', arguments: {}, ...asked });
        await allHandled();
        return [...logged];
    };
    await check('is sent the log from the level that it asked for', async () => {
        const due = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
        assert.deepEqual(await lines('info'), due.map(data => `info: ${data}`));
        assert.deepEqual(await lines('error'), []);
        if (revision === MODERN) assert.deepEqual(await lines(undefined), []);
    });
}

for (const revision of flags.revision) {
    await connection(revision);
}
console.log(failures === 0 ? 'all checks passed' : `${failures} checks failed`);
process.exit(failures === 0 ? 0 : 1);
