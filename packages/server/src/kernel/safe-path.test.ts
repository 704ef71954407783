import { execFileSync, spawnSync } from 'node:child_process';
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { draftInside, isDraft, openInside, readFileInside, removeInside, writeFileInside } from './safe-path.ts';

let base: string;
let root: string;
let outside: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'gatehouse-path-'));
  root = join(base, 'root');
  outside = join(base, 'outside');
  mkdirSync(join(root, 'notes', 'deep'), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(root, 'notes', 'a.txt'), 'inside');
  writeFileSync(join(outside, 'secret.txt'), 'SECRET');
  symlinkSync('../outside/secret.txt', join(root, 'link.txt'));
  symlinkSync('notes/a.txt', join(root, 'inner-link.txt'));
  symlinkSync('../outside', join(root, 'linked'));
  linkSync(join(outside, 'secret.txt'), join(root, 'hard.txt'));
  execFileSync('mkfifo', [join(root, 'fifo')]);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const corpus = [
  '',
  '.',
  './',
  '..',
  '../',
  '../outside/secret.txt',
  'notes/../../outside/secret.txt',
  'notes/..',
  'notes/./../..',
  'a/../b',
  './../x',
  'notes/./a.txt',
  '/etc/passwd',
  '//etc/passwd',
  '/proc/self/environ',
  '~',
  '~/x',
  'notes//a.txt',
  'notes/a.txt/',
  'notes/',
  '/notes/a.txt',
  'notes/a.txt/.',
  '..\\outside\\secret.txt',
  'notes\\a.txt',
  'C:\\Windows\\win.ini',
  'C:/Windows/win.ini',
  '\\\\server\\share',
  'file:///etc/passwd',
  'a.txt::$DATA',
  '%2e%2e/outside',
  '%2e%2e%2foutside',
  '..%2foutside',
  '%252e%252e%252foutside',
  '..%5coutside',
  'notes%2fa.txt',
  'a%00.txt',
  '%u002e%u002e/x',
  '.%2e/x',
  'a\0.txt',
  'notes/a.txt\0.png',
  'a\n.txt',
  'a\r.txt',
  'a\u007f',
  '\u0085x',
  '．．/outside',
  '．．／outside／secret.txt',
  '‥/outside',
  'notes／a.txt',
  '..\u2215outside\u200b',
  '..＼outside',
  'a\u202etxt.exe',
  '\ufeffa.txt',
  'zero\u200bwidth',
  'soft\u00adhyphen',
  'CON',
  'con.txt',
  'NUL',
  'aux.json',
  'COM1',
  'lpt9.log',
  'notes/prn',
  'ＣＯＮ',
  'trailing.',
  'trailing ',
  'notes. /a.txt',
  'e\u0301.txt',
  '\ud800.txt',
  'x'.repeat(256),
  'ü'.repeat(128),
  `${'d/'.repeat(40)}x`,
  `${'long/'.repeat(300)}x`,
  'link.txt',
  'inner-link.txt',
  'linked/secret.txt',
  'linked',
  'hard.txt',
  'fifo',
  'notes',
  'notes/deep',
  'missing.txt',
  'missing/missing.txt',
  'notes/a.txt/x',
];

describe('safe paths', () => {
  it(`refuses each of ${corpus.length} hostile, special or missing paths in the same words`, async () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    const said = new Set<string>();
    for (const path of corpus) {
      const error: unknown = await readFileInside(root, path, { maxBytes: 1000 }).then(
        () => expect.fail(`read ${JSON.stringify(path)}`),
        (reason: unknown) => reason,
      );
      expect(error, JSON.stringify(path)).toMatchObject({ code: 'not_found' });
      said.add(String(error));
    }
    expect(said.size).toBe(1);
  });

  it('writes through none of them and nothing outside', async () => {
    const writable = new Set(['missing.txt', 'missing/missing.txt']);
    for (const path of corpus.filter((each) => !writable.has(each))) {
      await expect(writeFileInside(root, path, 'x', { maxBytes: 1000 }), JSON.stringify(path)).rejects.toMatchObject({ code: 'not_found' });
    }
    expect(readdirSync(outside)).toEqual(['secret.txt']);
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('SECRET');
    expect(readdirSync(base).toSorted()).toEqual(['outside', 'root']);
    expect(readdirSync(root, { recursive: true }).filter((name) => String(name).endsWith('.tmp'))).toEqual([]);
  });

  it('refuses sockets', async () => {
    const server = createServer().listen(join(root, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    await expect(openInside(root, 'socket')).rejects.toMatchObject({ code: 'not_found' });
    server.close();
  });

  it('reads and writes ordinary names, also with spaces, dots, umlauts and other scripts', async () => {
    for (const path of [
      'plain.txt',
      './here.txt',
      'new/folder/file.md',
      '.hidden',
      'a..b',
      'with space.txt',
      'Übersicht.md',
      '日本語/メモ.txt',
      '100%.txt',
      'a (1).txt',
      "it's.txt",
      '-dash',
      '...x',
    ]) {
      await writeFileInside(root, path, `content of ${path}`, { maxBytes: 1000 });
      expect((await readFileInside(root, path, { maxBytes: 1000 })).toString()).toBe(`content of ${path}`);
    }
    expect(statSync(join(root, 'new', 'folder', 'file.md')).mode & 0o777).toBe(0o600);
    expect(statSync(join(root, 'new')).mode & 0o777).toBe(0o700);
  });

  it('replaces a file as a whole and keeps the old one when the new one is too large', async () => {
    await writeFileInside(root, 'notes/a.txt', 'newer', { maxBytes: 5 });
    expect(readFileSync(join(root, 'notes', 'a.txt'), 'utf8')).toBe('newer');
    await expect(writeFileInside(root, 'notes/a.txt', 'newest', { maxBytes: 5 })).rejects.toMatchObject({ code: 'payload_too_large' });
    expect(readFileSync(join(root, 'notes', 'a.txt'), 'utf8')).toBe('newer');
    expect(readdirSync(join(root, 'notes')).toSorted()).toEqual(['a.txt', 'deep']);
  });

  it('reads up to the limit and not a byte beyond', async () => {
    expect((await readFileInside(root, 'notes/a.txt', { maxBytes: 6 })).toString()).toBe('inside');
    await expect(readFileInside(root, 'notes/a.txt', { maxBytes: 5 })).rejects.toMatchObject({ code: 'payload_too_large' });
    writeFileSync(join(root, 'empty'), '');
    expect((await readFileInside(root, 'empty', { maxBytes: 5 })).length).toBe(0);
  });

  it.runIf(process.platform === 'linux')('neither returns foreign bytes nor writes outside while a folder is swapped for a link', async () => {
    writeFileSync(join(root, 'notes', 'secret.txt'), 'inside');
    symlinkSync('../outside', join(root, 'swap'));
    let swapping = true;
    let swaps = 0;
    /** A writer recreates the missing folder between two renames; that one is moved away. */
    const move = (from: string, to: string) => {
      for (;;) {
        try {
          renameSync(join(root, from), join(root, to));
          return;
        } catch {
          rmSync(join(root, to), { recursive: true });
        }
      }
    };
    const swapper = (async () => {
      while (swapping) {
        move('notes', 'aside');
        move('swap', 'notes');
        await new Promise((resolve) => setImmediate(resolve));
        move('notes', 'swap');
        move('aside', 'notes');
        swaps += 1;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    let read = 0;
    let refused = 0;
    const attempts = Array.from({ length: 3000 }, (_, index) => index);
    for (let at = 0; at < attempts.length; at += 8) {
      await Promise.all(
        attempts.slice(at, at + 8).map(async (index) => {
          try {
            if (index % 4 === 0) await writeFileInside(root, 'notes/new.txt', 'mine', { maxBytes: 100 });
            else expect((await readFileInside(root, 'notes/secret.txt', { maxBytes: 100 })).toString()).toBe('inside');
            read += 1;
          } catch (error) {
            expect(error).toMatchObject({ code: 'not_found' });
            refused += 1;
          }
        }),
      );
    }
    swapping = false;
    await swapper;
    expect(readdirSync(outside)).toEqual(['secret.txt']);
    expect(lstatSync(join(root, 'notes')).isDirectory()).toBe(true);
    expect(read).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
    expect(swaps).toBeGreaterThan(0);
  });

  it.runIf(process.platform === 'linux')('leaves no descriptor open', async () => {
    const count = () => readdirSync('/proc/self/fd').length;
    const before = count();
    for (let index = 0; index < 50; index += 1) {
      await readFileInside(root, 'notes/a.txt', { maxBytes: 100 });
      await readFileInside(root, 'linked/secret.txt', { maxBytes: 100 }).catch(() => {});
      await readFileInside(root, 'fifo', { maxBytes: 100 }).catch(() => {});
      await writeFileInside(root, 'notes/b.txt', 'x', { maxBytes: 100 });
    }
    expect(count()).toBeLessThanOrEqual(before + 2);
  });
});

describe('drafts', () => {
  it('have their name and all of their bytes once kept, and are private', async () => {
    {
      await using draft = await draftInside(root);
      await draft.write(Buffer.from('one '));
      await draft.write(Buffer.from('two'));
      expect(readdirSync(root).filter(isDraft)).toHaveLength(1);
      await draft.keep('kept.txt');
    }
    expect(readFileSync(join(root, 'kept.txt'), 'utf8')).toBe('one two');
    expect(statSync(join(root, 'kept.txt')).mode & 0o777).toBe(0o600);
    expect(readdirSync(root).filter(isDraft)).toEqual([]);
  });

  it('leave nothing when they are not kept', async () => {
    const before = readdirSync(root);
    {
      await using draft = await draftInside(root);
      await draft.write(Buffer.from('x'));
    }
    expect(readdirSync(root)).toEqual(before);
  });

  it('never replace a link or special file and refuse a name that is a path', async () => {
    const before = readdirSync(root);
    for (const name of ['link.txt', 'hard.txt', 'fifo', 'notes', 'linked', 'notes/new.txt', './new.txt', '../new.txt', '', '.']) {
      await using draft = await draftInside(root);
      await expect(draft.keep(name), name).rejects.toMatchObject({ code: 'not_found' });
    }
    expect(readdirSync(root)).toEqual(before);
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });
});

describe('removal', () => {
  it('removes a file or a link, never its target, a folder or something outside', async () => {
    for (const path of corpus)
      if (!/^(?:link|inner-link|hard)\.txt$|^(?:linked|fifo)$/.test(path)) expect(await removeInside(root, path), path).toBe(false);
    expect(await removeInside(root, 'link.txt')).toBe(true);
    expect(await removeInside(root, 'linked')).toBe(true);
    expect(await removeInside(root, 'notes/a.txt')).toBe(true);
    expect(await removeInside(root, 'notes/a.txt')).toBe(false);
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('SECRET');
    expect(readdirSync(join(root, 'notes'))).toEqual(['deep']);
  });
});

it.runIf(process.platform === 'linux')('without a free descriptor every call fails with unavailable, not not_found, and nothing is left open', () => {
  const code = `
    import { openSync, closeSync, readdirSync } from 'node:fs';
    import * as safe from ${JSON.stringify(new URL('safe-path.ts', import.meta.url).href)};
    const root = process.argv[1];
    const calls = {
      openInside: () => safe.openInside(root, 'notes/a.txt'),
      statInside: () => safe.statInside(root, 'notes/a.txt'),
      readFileInside: () => safe.readFileInside(root, 'notes/a.txt', { maxBytes: 100 }),
      writeFileInside: () => safe.writeFileInside(root, 'notes/b.txt', 'x', { maxBytes: 100 }),
      draftInside: () => safe.draftInside(root),
      listInside: () => safe.listInside(root, 'notes'),
      listFolderInside: () => safe.listFolderInside(root, 'notes', 10),
      entryInside: () => safe.entryInside(root, 'notes/a.txt'),
      makeFoldersInside: () => safe.makeFoldersInside(root, ['notes/new']),
      removeInside: () => safe.removeInside(root, 'notes/a.txt'),
    };
    // Loads what a first call loads.
    await safe.readFileInside(root, 'notes/a.txt', { maxBytes: 100 });
    const count = () => readdirSync('/proc/self/fd').length;
    const before = count();
    const said = {};
    // The first descriptor is missing, then the second.
    for (const spare of [0, 1])
      for (const [name, call] of Object.entries(calls)) {
        const held = [];
        try { for (;;) held.push(openSync('/dev/null')); } catch {}
        for (let n = 0; n < spare; n += 1) closeSync(held.pop());
        const result = await call().then(() => 'done', (error) => error.code);
        for (const fd of held) closeSync(fd);
        (said[name] ??= []).push(result);
      }
    console.log(JSON.stringify({ said, left: count() - before }));
  `;
  const limited = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '--no-warnings', '--input-type=module', '-e', code, root];
  const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
  const { said, left } = JSON.parse(stdout === '' ? stderr : stdout) as { said: Record<string, string[]>; left: number };
  for (const [name, results] of Object.entries(said)) expect([name, ...results]).toEqual([name, 'unavailable', 'unavailable']);
  expect(Object.keys(said)).toHaveLength(10);
  expect(left).toBe(0);
  expect(readFileSync(join(root, 'notes', 'a.txt'), 'utf8')).toBe('inside');
});
