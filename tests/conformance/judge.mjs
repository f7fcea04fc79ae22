// Judges the results of the conformance suite's runs by the two lists beside this file.
//
//   node judge.mjs RUN-FOLDER…     each with the suite's checks.json files of one run, and what the suite printed in `log`
//
// The suite itself judges by expected-failures.yaml too, but not the scenarios that a requirement set does not score. This judges
// every scenario that ran: whatever is not expected to fail must pass without failure or warning, what is expected to fail must
// fail, and every scenario must be in a list. It prints the totals as well.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const folders = process.argv.slice(2);
const read = name => readFileSync(new URL(name, import.meta.url), 'utf8').split('\n');
const entries = lines => new Set(lines.map(line => line.replace(/#.*/, '').trim()).filter(Boolean));

const mustPass = entries(read('must-pass.txt'));
// The suite reads the file as YAML and refuses anything but a list of `<scenario>` and `<scenario>:<check>` below `server:`.
const mayFail = entries(read('expected-failures.yaml').filter(line => /^\s*- /.test(line)).map(line => line.replace(/^\s*- /, '')));

/** What is wrong, and in which runs: most of it is wrong in several. */
const problems = new Map();
const met = new Set();

function problem(what, run) {
    problems.set(what, [...(problems.get(what) ?? []), ...(run ? [run] : [])]);
}

/** The checks of every scenario of a run; a scenario that the suite could not finish has none. */
function scenarios(folder) {
    const log = readFileSync(join(folder, 'log'), 'utf8');
    const started = [...log.matchAll(/^=== Running scenario: (\S+) ===$/gm)].map(([, name]) => [name, []]);
    const checks = new Map(started);
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const [, name] = /^server-(.+)-\d{4}-\d{2}-\d{2}T/.exec(entry.name) ?? [];
        if (name) checks.set(name, JSON.parse(readFileSync(join(folder, entry.name, 'checks.json'), 'utf8')));
    }
    return checks;
}

const bad = check => check.status === 'FAILURE' || check.status === 'WARNING';

function judge(run, scenario, checks) {
    const listed = [...mustPass, ...mayFail].filter(entry => entry === scenario || entry.startsWith(`${scenario}:`));
    if (listed.length === 0) problem(`${scenario} is in neither list`, run);
    for (const check of checks.filter(bad)) {
        const name = `${scenario}:${check.id}`;
        if (mayFail.has(scenario) || mayFail.has(name)) continue;
        problem(`${name} must pass, but is a ${check.status}: ${check.errorMessage ?? check.description}`, run);
    }
    for (const entry of listed) {
        const own = entry === scenario ? checks : checks.filter(check => `${scenario}:${check.id}` === entry);
        if (own.length > 0) met.add(entry);
        if (entry === scenario && checks.length === 0) problem(`${scenario} could not be finished by the suite`, run);
        // A single check may be skipped because one before it failed, which is no reason to strike it from the list.
        const good = own.length > 0 && !own.some(bad) && (entry === scenario || own.some(check => check.status === 'SUCCESS'));
        if (mayFail.has(entry) && good) problem(`${entry} no longer fails: move it from expected-failures.yaml to must-pass.txt`, run);
    }
}

for (const folder of folders) {
    const run = basename(folder);
    const totals = { SUCCESS: 0, FAILURE: 0, WARNING: 0, INFO: 0, SKIPPED: 0 };
    const all = scenarios(folder);
    for (const [scenario, checks] of all) {
        for (const { status } of checks) totals[status] = (totals[status] ?? 0) + 1;
        judge(run, scenario, checks);
    }
    if (all.size === 0) problem('the suite ran no scenario', run);
    const { SUCCESS, FAILURE, WARNING, INFO, SKIPPED } = totals;
    console.log(
        `${run.padEnd(36)} ${all.size} scenarios: ${SUCCESS} checks passed, ${FAILURE} failed, ${WARNING} warnings (${INFO} told, ${SKIPPED} skipped)`,
    );
}
for (const entry of [...mustPass, ...mayFail]) {
    if (mustPass.has(entry) && mayFail.has(entry)) problem(`${entry} is in both lists`);
    if (!met.has(entry)) problem(`${entry} is listed, but no run has it`);
}
console.log(`${mustPass.size} entries must pass, ${mayFail.size} are expected to fail`);
for (const [what, runs] of problems) console.log(`FAIL  ${what}${runs.length > 0 ? ` (in ${runs.join(', ')})` : ''}`);
process.exit(problems.size === 0 ? 0 : 1);
