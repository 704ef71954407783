import { expect, test } from 'vitest';
import { proveKnowledgeFolder } from './knowledge-folder.ts';

test('a folder is indexed and watched with all its subfolders', async () => {
  expect((await proveKnowledgeFolder({ files: 60 })).wrong).toEqual([]);
});

test('a build that watches no subfolders is caught', async () => {
  const { wrong } = await proveKnowledgeFolder({ files: 60, broken: 'subfolders-unwatched' });
  expect(wrong).toContainEqual(expect.stringContaining('change in a subfolder'));
});
