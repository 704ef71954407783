import { expect, test } from 'vitest';
import { proveKnowledgeFolder } from './knowledge-folder.ts';

test('a folder is indexed and watched with all its subfolders', async () => {
  expect((await proveKnowledgeFolder({ files: 60, maxMb: 600 })).wrong).toEqual([]);
});
