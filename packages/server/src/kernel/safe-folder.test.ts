import { rmSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listFolders, publishFolder, readTree, removeFolder, tidyFolders } from './safe-folder.ts';

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'gatehouse-folder-'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

const place = () => ({ base, within: ['skills'] });
const files = (text: string) => [
  { path: 'a.md', bytes: Buffer.from(text) },
  { path: 'deep/er/b.md', bytes: Buffer.from('b') },
];
const hidden = async () => (await readdir(join(base, 'skills'))).filter((name) => name.startsWith('.'));

test('a folder appears as a whole, and can be rolled back', async () => {
  const first = await publishFolder(place(), 'one', files('1'), { replace: false });
  await first.settle();
  expect((await readTree({ base, within: ['skills', 'one'] }, { maxEntries: 10, maxDepth: 5 })).entries.map(({ path }) => path).toSorted()).toEqual([
    'a.md',
    'deep/er/b.md',
  ]);
  const second = await publishFolder(place(), 'one', files('2'), { replace: true });
  expect(await readFile(join(base, 'skills/one/a.md'), 'utf8')).toBe('2');
  await second.undo();
  expect(await readFile(join(base, 'skills/one/a.md'), 'utf8')).toBe('1');
  const other = await publishFolder(place(), 'two', files('2'), { replace: false });
  await other.undo();
  expect((await listFolders(place())).map(({ name }) => name)).toEqual(['one']);
  expect(await hidden()).toEqual([]);
});

test('a name that is taken or missing is refused, and nothing is left behind', async () => {
  await (await publishFolder(place(), 'one', files('1'), { replace: false })).settle();
  await expect(publishFolder(place(), 'one', files('2'), { replace: false })).rejects.toMatchObject({ code: 'conflict' });
  await expect(publishFolder(place(), 'two', files('2'), { replace: true })).rejects.toMatchObject({ code: 'not_found' });
  await expect(publishFolder(place(), 'three', [{ path: '../x', bytes: Buffer.from('x') }], { replace: false })).rejects.toMatchObject({
    code: 'not_found',
  });
  await expect(publishFolder(place(), '../x', files('x'), { replace: false })).rejects.toMatchObject({ code: 'not_found' });
  await symlink(tmpdir(), join(base, 'skills/link'));
  await expect(publishFolder(place(), 'link', files('x'), { replace: true })).rejects.toMatchObject({ code: 'conflict' });
  expect(await hidden()).toEqual([]);
  expect(await readdir(base)).toEqual(['skills']);
});

test('links are reported and never followed', async () => {
  await mkdir(join(base, 'elsewhere'));
  await writeFile(join(base, 'elsewhere/x'), 'x');
  await mkdir(join(base, 'skills/one'), { recursive: true });
  await symlink('../../elsewhere', join(base, 'skills/one/link'));
  await symlink('../elsewhere', join(base, 'skills/two'));
  expect((await listFolders(place())).toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
    { name: 'one', isLink: false },
    { name: 'two', isLink: true },
  ]);
  expect(await readTree({ base, within: ['skills', 'one'] }, { maxEntries: 10, maxDepth: 5 })).toMatchObject({
    entries: [{ path: 'link', kind: 'link' }],
    more: false,
  });
  await expect(readTree({ base, within: ['skills', 'two'] }, { maxEntries: 10, maxDepth: 5 })).rejects.toMatchObject({ code: 'not_found' });
  expect(await removeFolder(place(), 'two')).toBe(true);
  expect(await readdir(join(base, 'elsewhere'))).toEqual(['x']);
  expect(await removeFolder(place(), 'two')).toBe(false);
});

test('leftovers of a crash are cleaned up', async () => {
  const id = '0123456789abcdef01234567';
  for (const name of [`.${id}.new`, `.${id}.old.lost`, `.${id}.old.kept`, 'kept', '.other']) {
    await mkdir(join(base, 'skills', name), { recursive: true });
    await writeFile(join(base, 'skills', name, 'x'), name);
  }
  await tidyFolders(place());
  expect((await readdir(join(base, 'skills'))).toSorted()).toEqual(['.other', 'kept', 'lost']);
  expect(await readFile(join(base, 'skills/kept/x'), 'utf8')).toBe('kept');
  await tidyFolders({ base, within: ['absent'] });
});

test('reading a tree stops at its bounds', async () => {
  await mkdir(join(base, 'skills/a/b/c'), { recursive: true });
  for (const name of ['a/1', 'a/2', 'a/b/3', 'a/b/c/4']) await writeFile(join(base, 'skills', name), '');
  expect((await readTree(place(), { maxEntries: 2, maxDepth: 9 })).more).toBe(true);
  expect(await readTree(place(), { maxEntries: 9, maxDepth: 2 })).toMatchObject({ more: true, entries: [{}, {}, {}] });
});

test('folders that cannot be read fail, or are named while the rest is read', async () => {
  const read = async (swap: (path: string) => void, onUnread?: (path: string) => void) => {
    for (const name of ['a', 'b']) {
      await rm(join(base, 'skills', name), { recursive: true, force: true });
      await mkdir(join(base, 'skills', name), { recursive: true });
      await writeFile(join(base, 'skills', name, `of-${name}`), '');
    }
    // While one of the two folders is read, the other one becomes unreadable.
    let other = '';
    const skip = (name: string) => {
      if (name.startsWith('of-') && other === '') swap(join(base, 'skills', (other = name === 'of-a' ? 'b' : 'a')));
      return false;
    };
    const tree = await readTree(place(), { maxEntries: 10, maxDepth: 5, skip, ...(onUnread !== undefined && { onUnread }) });
    return { paths: tree.entries.map(({ path }) => path), other };
  };
  const unread: string[] = [];
  const toLink = (path: string) => {
    rmSync(path, { recursive: true });
    symlinkSync('/etc', path);
  };
  await expect(read(toLink)).rejects.toMatchObject({ code: 'not_found' });
  const { paths, other } = await read(toLink, (path) => unread.push(path));
  expect(unread).toEqual([other]);
  expect(paths).toEqual([other === 'a' ? 'b/of-b' : 'a/of-a']);
  await read(
    (path) => rmSync(path, { recursive: true }),
    (path) => unread.push(path),
  );
  expect(unread).toHaveLength(1);
});
