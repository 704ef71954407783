import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { cliExitCodes } from '../packages/cli/src/exit-codes.ts';
import { type Method, contract, events } from '../packages/contract/src/index.ts';
import { asyncApiDocument } from '../packages/contract/src/asyncapi.ts';
import { openApiDocument } from '../packages/contract/src/openapi.ts';
import { openRpcDocument } from '../packages/contract/src/openrpc.ts';
import {
  configReference,
  errorsReference,
  eventsReference,
  exitCodesReference,
  httpReference,
  rpcReference,
} from '../packages/contract/src/reference-doc.ts';
import { configJsonSchema } from '../packages/server/src/kernel/config/json-schema.ts';
import { absentSections } from '../packages/contract/src/section.ts';
import { AgentConfig } from '../packages/contract/src/shared/agent-config.ts';
import { RootConfig } from '../packages/server/src/config-schema.ts';
import { exitCodes } from '../packages/server/src/process/exit-codes.ts';

const root = join(import.meta.dirname, '..');

/** Returns every generated file: path from the root of the repository → content. Equal contracts produce equal bytes. */
export async function generateDocuments(): Promise<Map<string, string>> {
  const version = await productVersion();
  const openRpc = openRpcDocument({ version });
  const openApi = openApiDocument({ version });
  return new Map([
    ['docs/reference/openrpc.json', toJson(openRpc)],
    ['docs/reference/openapi.json', toJson(openApi)],
    ['docs/reference/asyncapi.json', toJson(asyncApiDocument({ version }))],
    ['docs/reference/rpc.md', rpcReference(openRpc)],
    ['docs/reference/http.md', httpReference(openApi)],
    ['docs/reference/events.md', eventsReference()],
    ['docs/reference/errors.md', errorsReference()],
    ['docs/reference/config.schema.json', toJson(configJsonSchema(RootConfig))],
    ['docs/reference/config.md', configReference(z.record(z.string(), z.json()).parse(configJsonSchema(RootConfig)))],
    [
      'docs/reference/exit-codes.md',
      exitCodesReference([
        { title: 'The daemon', codes: Object.values(exitCodes) },
        { title: '`gatehouse`, the command', codes: cliExitCodes },
      ]),
    ],
    ['packages/contract/src/agent-defaults.json', toJson(absentSections(AgentConfig))],
    ['packages/server/src/config-defaults.json', toJson(absentSections(RootConfig))],
    ['packages/client/src/read-methods.ts', readMethodsModule()],
    ['packages/dashboard/src/data/event-kinds.ts', eventKindsModule()],
  ]);
}

async function productVersion(): Promise<string> {
  const manifest: { version?: unknown } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  if (typeof manifest.version !== 'string') throw new Error('package.json has no version.');
  return manifest.version;
}

/** The client has the contract as types only, so the names of calls that are safe to repeat are written out. */
function readMethodsModule(): string {
  const names = Object.entries<Method>(contract)
    .filter(([, one]) => one.risk === 'read')
    .map(([name]) => `  '${name}',\n`)
    .sort();
  return `// Made by tools/gen.ts from the contract.\nimport type { MethodName } from '@gatehouse/contract';\n\n/** Methods of risk \`read\`: calling one twice changes nothing. */\nexport const readMethods: ReadonlySet<string> = new Set<MethodName>([\n${names.join('')}]);\n`;
}

/** The dashboard also has the contract as types only, and offers the kinds as filters before one was seen. */
function eventKindsModule(): string {
  const rows = Object.entries(events).map(([kind, { category }]) => `  { kind: '${kind}', category: t('${category}') },\n`);
  return `// Made by tools/gen.ts from the contract.\nimport { t } from '../language.ts';\nimport type { EventKind } from '@gatehouse/contract';\n\n/** Every kind of event with the category that it is listed under. */\nexport const eventKinds: readonly { readonly kind: EventKind; readonly category: string }[] = [\n${rows.join('')}];\n`;
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Returns one sentence for each file that is missing or differs, with the first different line. */
export function findStale(documents: ReadonlyMap<string, string>, current: ReadonlyMap<string, string>): string[] {
  return [...documents].flatMap(([file, text]) => {
    const before = current.get(file);
    if (before === text) return [];
    return [before === undefined ? `${file} is missing.` : `${file} is stale: ${firstDifference(before, text)}`];
  });
}

function firstDifference(before: string, after: string): string {
  const old = before.split('\n');
  const fresh = after.split('\n');
  const line = Array.from({ length: Math.max(old.length, fresh.length) }).findIndex((_, index) => old[index] !== fresh[index]);
  return `line ${line + 1}\n  - ${old[line] ?? '(end)'}\n  + ${fresh[line] ?? '(end)'}`;
}

async function readCurrent(files: Iterable<string>): Promise<Map<string, string>> {
  const current = new Map<string, string>();
  for (const file of files) if (existsSync(join(root, file))) current.set(file, await readFile(join(root, file), 'utf8'));
  return current;
}

async function run(check: boolean): Promise<number> {
  const documents = await generateDocuments();
  const current = await readCurrent(documents.keys());
  if (check) {
    const stale = findStale(documents, current);
    for (const sentence of stale) process.stderr.write(`${sentence}\n`);
    if (stale.length > 0) process.stderr.write('Run `npm run gen` and commit the result.\n');
    return stale.length > 0 ? 1 : 0;
  }
  for (const [file, text] of documents) {
    if (current.get(file) === text) continue;
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
    process.stdout.write(`wrote ${file}\n`);
  }
  // The others say what this process read there when it started.
  if ([...documents].some(([file, text]) => file.endsWith('-defaults.json') && current.get(file) !== text))
    return spawnSync(process.execPath, [import.meta.filename], { stdio: 'inherit' }).status ?? 1;
  return 0;
}

if (import.meta.main) process.exitCode = await run(process.argv.includes('--check'));
