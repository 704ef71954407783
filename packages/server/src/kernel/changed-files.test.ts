import { lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findChangedFiles, findFolders, isInMovedFolder } from './changed-files.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gatehouse-changed-'));
  for (const folder of ['data/inbox/deep', 'data/own', 'output']) mkdirSync(join(root, folder), { recursive: true });
  for (const file of ['data/inbox/x.txt', 'data/inbox/deep/y.txt', 'data/own/z.txt']) writeFileSync(join(root, file), file);
});
afterEach(() => rmSync(root, { recursive: true }));

const tops = ['data', 'output'];
/** Later than everything in this test, so that what counts does so without its time. */
const never = Number.MAX_SAFE_INTEGER;
const move = (from: string, to: string) => renameSync(join(root, from), join(root, to));
const sorted = ({ files, folders }: { readonly files: readonly string[]; readonly folders: readonly string[] }) => [files.toSorted(), folders];

test('everything in a folder that was moved counts, whatever its own time says, and nothing else', async () => {
  const before = await findFolders(root, tops, never);
  expect(await findChangedFiles(root, tops, never, before)).toEqual({ files: [], folders: [] });
  move('data/inbox', 'data/archive');
  expect(sorted(await findChangedFiles(root, tops, never, before))).toEqual([['data/archive/deep/y.txt', 'data/archive/x.txt'], []]);
  expect(await isInMovedFolder(root, 'data/archive/deep/y.txt', before)).toBe(true);
  expect(await isInMovedFolder(root, 'data/own/z.txt', before)).toBe(false);
  expect(await isInMovedFolder(root, 'notes.txt', before)).toBe(false);
});

test('folders that take each other’s names were both moved, and one that came back was not', async () => {
  const before = await findFolders(root, tops, never);
  move('data/inbox', 'data/other');
  move('data/other', 'data/inbox');
  expect(await findChangedFiles(root, tops, never, before)).toEqual({ files: [], folders: [] });
  move('data/inbox', 'data/other');
  move('data/own', 'data/inbox');
  move('data/other', 'data/own');
  const all = ['data/inbox/z.txt', 'data/own/deep/y.txt', 'data/own/x.txt'];
  expect(sorted(await findChangedFiles(root, tops, never, before))).toEqual([all, []]);
});

test('without known locations, after a crash, the time of a folder counts; one that was moved just before the scan counts as moved', async () => {
  move('data/inbox', 'data/archive');
  const { ctimeMs } = lstatSync(join(root, 'data/archive'));
  expect((await findChangedFiles(root, tops, ctimeMs, undefined)).files).toEqual(expect.arrayContaining(['data/archive/deep/y.txt']));
  const late = await findFolders(root, tops, ctimeMs);
  expect(await isInMovedFolder(root, 'data/archive/x.txt', late)).toBe(true);
});

test('what lies in a folder whose name no tool could ask for counts for the folder around it', async () => {
  const before = await findFolders(root, tops, never);
  move('data/inbox', 'data/in:box');
  expect(await findChangedFiles(root, tops, never, before)).toEqual({ files: [], folders: ['data'] });
});
