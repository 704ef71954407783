import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../../../kernel/log.ts';
import { testWorkspaceTools } from './testing.ts';
import { callTools } from '../../../../runtime/call-tools.ts';
import { createFence } from '../../../../runtime/fence.ts';
import { pointerOf } from '../../../../runtime/off-load.ts';
import { testModel, turnInput } from '../../../../runtime/testing.ts';
import type { Tool } from '../../../../runtime/tool.ts';

let workspaceDir: string;
beforeEach(async () => {
  workspaceDir = join(await mkdtemp(join(tmpdir(), 'gatehouse-offload-')), 'agent');
});
afterEach(() => rm(join(workspaceDir, '..'), { recursive: true }));

const read = testWorkspaceTools()[0]!;
const page = Array.from({ length: 3000 }, (_, index) => `line ${index} of the page`).join('\n');
const fetchTool = (content: string): Tool => ({
  name: 'fetch',
  description: 'fetch',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async () => ({ content, outside: { source: 'web page' } }),
});

async function call(
  tools: readonly Tool[],
  name: string,
  args: object = {},
  contextWindow = testModel.contextWindow,
  who: object = {},
  more: Partial<Parameters<typeof callTools>[0]> = {},
): Promise<string> {
  const input = turnInput({ ...who, tools, agent: { tools: { profile: 'full' } }, workspaceDir, models: [{ ...testModel, contextWindow }] });
  const deps = { clock: createStepClock(), fence: createFence({ key: Buffer.alloc(32) }), log: silentLog, ...more };
  const run = { input, signal: new AbortController().signal, beforeOnce: async () => {} };
  const [result] = await callTools(deps, run, [{ id: 'c1', name, arguments: JSON.stringify(args) }]);
  return result?.content ?? '';
}

const pathIn = (result: string) => /file (\S+):/.exec(pointerOf(result) ?? '')?.[1] ?? '';

test('a large result is written to a file; the model gets its ends and a usable pointer to the rest', async () => {
  const result = await call([fetchTool(page), read], 'fetch');
  expect(result.length).toBeLessThan(7000);
  expect(result).toContain('line 0 of the page');
  expect(result).toContain('line 2999 of the page');
  expect(result).not.toContain('line 1500 of the page');
  // The pointer is trusted text and follows the fence.
  expect(result).toMatch(/<<<END-UNTRUSTED-TEXT [0-9a-f]{32}>>>\n\[\d+ characters in all/);
  const rest = await call([read], 'read', { path: pathIn(result), offset: 1500, limit: 3 });
  expect(rest).toContain('line 1500 of the page');
});

test('one endless line can be read in parts as well', async () => {
  const result = await call([fetchTool(`${'x'.repeat(60_000)}needle${'y'.repeat(60_000)}`), read], 'fetch');
  expect(await call([read], 'read', { path: pathIn(result), offset: 61, limit: 2 })).toContain('needle');
});

test('without a tool to follow it there is no pointer, and file content is not written to another file', async () => {
  const alone = await call([fetchTool(page)], 'fetch');
  expect(pointerOf(alone)).toBeUndefined();
  expect(alone).toContain('characters left out');
  const written = await call([fetchTool(page), read], 'fetch');
  await call([read], 'read', { path: pathIn(written) });
  expect(await readdir(join(workspaceDir, '.gatehouse/offload'))).toHaveLength(1);
});

test('the limit follows the context window, and small results stay as they are', async () => {
  expect(pointerOf(await call([fetchTool('x'.repeat(5000)), read], 'fetch', {}, 8000))).toBeDefined();
  expect(pointerOf(await call([fetchTool('x'.repeat(5000)), read], 'fetch', {}, 200_000))).toBeUndefined();
});

test('text from outside is marked before it is in a file; without the mark there is no file', async () => {
  const folder = join(workspaceDir, '.gatehouse/offload');
  const filesAtMark: [boolean, number][] = [];
  const keptFile = async (_: unknown, _path: string, tainted: boolean) => {
    filesAtMark.push([tainted, (await readdir(folder).catch(() => [])).length]);
  };
  expect(pointerOf(await call([fetchTool(page), read], 'fetch', {}, undefined, {}, { keptFile }))).toBeDefined();
  const own: Tool = { ...fetchTool(page), run: async () => ({ content: page }) };
  await call([own, read], 'fetch', {}, undefined, {}, { keptFile });
  expect(filesAtMark).toEqual([
    [true, 0],
    [false, 2],
  ]);
  const full = () => Promise.reject(new Error('the disk is full'));
  const cut = await call([fetchTool(page), read], 'fetch', {}, undefined, {}, { keptFile: full });
  expect(pointerOf(cut)).toBeUndefined();
  expect(cut).toMatch(/<<<UNTRUSTED-TEXT[^]*characters left out[^]*<<<END-UNTRUSTED-TEXT/);
  expect(await readdir(folder)).toHaveLength(2);
});

test('the oldest files are deleted to free space for new ones', async () => {
  const folder = join(workspaceDir, '.gatehouse/offload');
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < 100; index += 1) {
    await writeFile(join(folder, `old-${index}.txt`), 'old');
    await utimes(join(folder, `old-${index}.txt`), index, index);
  }
  const result = await call([fetchTool(page), read], 'fetch');
  const left = await readdir(folder);
  expect(left).toHaveLength(100);
  expect(left).not.toContain('old-0.txt');
  expect(left).toContain('old-1.txt');
  expect(left.some((name) => pathIn(result).endsWith(name))).toBe(true);
});

test('a folder that was replaced by a link is not written through: the result is cut instead', async () => {
  const elsewhere = join(workspaceDir, '../elsewhere');
  await mkdir(elsewhere, { recursive: true });
  await mkdir(join(workspaceDir, '.gatehouse'), { recursive: true });
  await symlink(elsewhere, join(workspaceDir, '.gatehouse/offload'));
  const result = await call([fetchTool(page), read], 'fetch');
  expect(pointerOf(result)).toBeUndefined();
  expect(await readdir(elsewhere)).toEqual([]);
});

test('a result is readable only by its conversation and its principal, even for others who know its name', async () => {
  const ops = { principalId: 'token:ops', conversationRef: 'cv_ops' };
  const path = pathIn(await call([fetchTool(page), read], 'fetch', {}, undefined, ops));
  const readAs = (who: object, at = path) => call([read], 'read', { path: at, limit: 1 }, undefined, who);
  expect(await readAs(ops)).toContain('line 0 of the page');
  expect(await readAs({ ...ops, conversationRef: 'cv_fork' })).toContain('line 0 of the page');
  expect(await readAs({ ...ops, principalId: 'token:other' })).toContain('line 0 of the page');
  const eve = { principalId: 'token:eve', conversationRef: 'cv_eve' };
  const missing = await readAs(eve, 'missing.txt');
  for (const at of [path, `./${path}`, '.gatehouse/workspace.json', path.replace(/-tn_/, '-TN_')]) expect(await readAs(eve, at)).toBe(missing);
});
