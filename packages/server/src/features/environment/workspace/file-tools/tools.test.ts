import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSearch } from '../search/search.ts';
import { createToolCaller, testWorkspaceTools } from './testing.ts';

let base: string;
let workspaceDir: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'gatehouse-workspace-'));
  workspaceDir = join(base, 'workspaces', 'default');
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const call = createToolCaller(() => workspaceDir);

describe('workspace tools', () => {
  it('write a file and read it back, fenced; the folder is private to its owner', async () => {
    expect(await call('write', { path: 'notes/a.md', content: '# Hü\n\nline\n' })).toMatchObject({
      content: 'Wrote 12 bytes to notes/a.md',
      failed: false,
    });
    expect(await call('read', { path: 'notes/a.md' })).toEqual({ content: '# Hü\n\nline', source: 'workspace file notes/a.md', failed: false });
    expect(statSync(workspaceDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(workspaceDir, 'notes', 'a.md')).mode & 0o777).toBe(0o600);
    await call('write', { path: 'notes/a.md', content: '' });
    expect(await call('read', { path: 'notes/a.md' })).toMatchObject({ content: '(the file is empty)' });
  });

  it('show a part of a file, and where to continue', async () => {
    await call('write', { path: 'long.txt', content: Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`).join('\n') });
    expect((await call('read', { path: 'long.txt' })).content).toMatch(
      /^line 1\n.*line 2000\n\[lines 1 to 2000 of 5000; continue with offset 2001\]$/s,
    );
    expect((await call('read', { path: 'long.txt', offset: 4999, limit: 5 })).content).toBe('line 4999\nline 5000\n[lines 4999 to 5000 of 5000]');
    expect(await call('read', { path: 'long.txt', offset: 5001 })).toMatchObject({ content: 'offset: the file has 5000 lines', failed: true });
  });

  it('limit reads and writes', async () => {
    expect(await call('write', { path: 'big.txt', content: 'x'.repeat(1024 * 1024 + 1) })).toMatchObject({
      failed: true,
      content: 'The content is larger than 1048576 bytes',
    });
    await call('write', { path: 'wide.txt', content: `${'y'.repeat(1000)}\n`.repeat(1000) });
    expect((await call('read', { path: 'wide.txt' })).content).toMatch(/\n\[lines 1 to 47 of 1000; continue with offset 48\]$/);
    writeFileSync(join(workspaceDir, 'huge.bin'), Buffer.alloc(16 * 1024 * 1024 + 1, 'a'));
    expect(await call('read', { path: 'huge.bin' })).toMatchObject({ failed: true, content: expect.stringContaining('larger than') });
    writeFileSync(join(workspaceDir, 'binary'), Buffer.from([1, 0, 2]));
    expect(await call('read', { path: 'binary' })).toMatchObject({ failed: true, content: 'The file is not text' });
  });

  it('stay inside the folder', async () => {
    await call('write', { path: 'a.txt', content: 'x' });
    writeFileSync(join(base, 'secret.txt'), 'SECRET');
    symlinkSync(join(base, 'secret.txt'), join(workspaceDir, 'link.txt'));
    const missing = await call('read', { path: 'missing.txt' });
    expect(missing.failed).toBe(true);
    for (const path of ['../../secret.txt', join(base, 'secret.txt'), 'link.txt', '..%2f..%2fsecret.txt']) {
      expect(await call('read', { path })).toEqual(missing);
      expect(await call('write', { path, content: 'mine' })).toEqual(missing);
    }
    expect(readFileSync(join(base, 'secret.txt'), 'utf8')).toBe('SECRET');
  });

  it('report invalid arguments', async () => {
    expect(await call('read', { path: 'a', offset: 0 })).toMatchObject({ failed: true, content: expect.stringMatching(/offset: /) });
    expect(await call('write', { path: 'a' })).toMatchObject({ failed: true, content: expect.stringMatching(/content: /) });
  });

  it('report reading before any write as a missing file', async () => {
    expect(await call('read', { path: 'a.txt' })).toMatchObject({ failed: true, content: expect.stringContaining('There is no such file') });
  });
});

const put = (path: string, content: string | Buffer) => {
  mkdirSync(join(workspaceDir, path, '..'), { recursive: true });
  writeFileSync(join(workspaceDir, path), content);
};
const content = (path: string) => readFileSync(join(workspaceDir, path), 'utf8');

describe('edit', () => {
  const edit = (oldText: string, newText: string, more: object = {}) => call('edit', { path: 'a.txt', oldText, newText, ...more });

  it('replaces a unique match, or every match with replaceAll', async () => {
    put('a.txt', 'one\ntwo\none\n');
    expect(await edit('two', '$& and $1')).toMatchObject({ content: 'Replaced one match in a.txt', failed: false });
    expect(content('a.txt')).toBe('one\n$& and $1\none\n');
    expect(await edit('one', 'ONE')).toMatchObject({ failed: true, content: expect.stringContaining('2 times (lines 1, 3)') });
    expect(await edit('one', 'ONE', { replaceAll: true })).toMatchObject({ content: 'Replaced 2 matches in a.txt' });
    expect(content('a.txt')).toBe('ONE\n$& and $1\nONE\n');
    put('a.txt', 'aaaa aab aabaab');
    expect(await edit('aab', 'x', { replaceAll: true })).toMatchObject({ content: 'Replaced 3 matches in a.txt' });
    expect(content('a.txt')).toBe('aaaa x xx');
  });

  it('keeps the line ends of the file', async () => {
    put('a.txt', 'one\r\ntwo\r\nthree\r\n');
    expect(await edit('one\ntwo', '1\n2')).toMatchObject({ failed: false });
    expect(content('a.txt')).toBe('1\r\n2\r\nthree\r\n');
  });

  it('says how to correct a call, without quoting the file', async () => {
    put('a.txt', 'function f() {\n    return 1;\n}\n');
    expect(await edit('function f() {\n  return 1;\n}', 'x')).toMatchObject({
      content: expect.stringContaining('line 1 has it with other white space'),
    });
    expect(await edit('function f() {\nreturn 2;', 'x')).toMatchObject({ content: expect.stringContaining('its first line is at line 1') });
    expect(await edit('nothing like it', 'x')).toMatchObject({ content: expect.stringMatching(/^oldText is not in the file: read the file/) });
    expect(await edit('return 1;', 'return 1;')).toMatchObject({ content: expect.stringContaining('nothing would change') });
    expect(await edit('', 'x')).toMatchObject({ failed: true });
    put('a.txt', Buffer.from([0x61, 0xff]));
    expect(await edit('a', 'b')).toMatchObject({ content: 'a.txt is not UTF-8 text' });
  });

  it('takes linear time on text made to be slow', async () => {
    const missing = (length: number) => {
      put('a.txt', 'a'.repeat(length));
      return edit(`b${'a'.repeat(length * 0.4)}`, 'x');
    };
    expect(await missing(1_000_000)).toMatchObject({ failed: true });
    expect(await cpuGrowth(125_000, missing)).toBeLessThan(linear);
  });

  it('concurrent changes of one file do not undo each other', async () => {
    put('a.txt', Array.from({ length: 20 }, (_, index) => `line ${index};`).join('\n'));
    const results = await Promise.all(Array.from({ length: 20 }, (_, index) => edit(`line ${index};`, `done ${index};`)));
    expect(results.filter(({ failed }) => failed)).toEqual([]);
    expect(content('a.txt')).not.toContain('line');
  });
});

describe('apply_patch', () => {
  const patch = (...lines: string[]) => call('apply_patch', { patch: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') });

  it('adds, changes, moves and deletes', async () => {
    put('src/a.ts', 'import x;\n\nclass A {\n  one() {\n    return 1;\n  }\n  two() {\n    return 1;\n  }\n}\n');
    put('old.txt', 'gone\n');
    put('from.txt', 'one\ntwo\n');
    put('crlf.txt', 'one\r\ntwo\r\n');
    expect(
      await patch(
        '*** Add File: new/file.txt',
        '+first',
        '+',
        '+third',
        '*** Update File: src/a.ts',
        '@@ two() {',
        '-    return 1;',
        '+    return 2;',
        '*** Delete File: old.txt',
        '*** Update File: from.txt',
        '*** Move to: to/there.txt',
        '@@',
        ' one',
        '-two',
        '+2',
        '*** Update File: crlf.txt',
        ' one',
        '+one and a half',
        ' two',
        '*** End of File',
      ),
    ).toEqual({
      content: 'added new/file.txt\nupdated src/a.ts\ndeleted old.txt\nmoved from.txt to to/there.txt\nupdated crlf.txt',
      source: undefined,
      failed: false,
    });
    expect(content('new/file.txt')).toBe('first\n\nthird\n');
    expect(content('src/a.ts')).toBe('import x;\n\nclass A {\n  one() {\n    return 1;\n  }\n  two() {\n    return 2;\n  }\n}\n');
    expect(content('to/there.txt')).toBe('one\n2\n');
    expect(content('crlf.txt')).toBe('one\r\none and a half\r\ntwo\r\n');
    expect(readdirSync(workspaceDir).toSorted()).toEqual(['crlf.txt', 'new', 'src', 'to']);
  });

  it('does nothing when one part does not fit', async () => {
    put('a.txt', 'one\n');
    put('b.txt', 'two\n');
    const cases: readonly (readonly [string[], RegExp])[] = [
      [['*** Update File: b.txt', '@@', '-three', '+x'], /b\.txt: change 1: its first line is not in the file/],
      [['*** Update File: b.txt', '@@ nowhere', '-two', '+x'], /"@@" line is not in the file/],
      [['*** Add File: b.txt', '+x'], /b\.txt exists already/],
      [['*** Delete File: missing.txt'], /There is no such file/],
      [['*** Update File: a.txt', '*** Move to: b.txt', '@@', '-one', '+1'], /named twice|exists already/],
      [['*** Update File: A.txt', '@@', '-one', '+1'], /named twice/],
      [['*** Delete File: skills/x.md'], /cannot be changed/],
      [['*** Delete File: b.txt', '*** Rename File: x'], /nothing may follow/],
      [['*** Add File: c.txt', 'no plus'], /each line of a new file begins with "\+"/],
      [['*** Update File: b.txt', 'two'], /each line of an update/],
    ];
    for (const [lines, says] of cases) {
      expect(await patch('*** Update File: a.txt', '@@', '-one', '+changed', '*** Add File: fresh.txt', '+x', ...lines)).toMatchObject({
        failed: true,
        content: expect.stringMatching(says),
      });
      expect(content('a.txt')).toBe('one\n');
      expect(readdirSync(workspaceDir).toSorted()).toEqual(['a.txt', 'b.txt']);
    }
    expect(await call('apply_patch', { patch: 'x' })).toMatchObject({ content: 'patch, line 1: expected "*** Begin Patch"' });
    expect(await patch()).toMatchObject({ content: expect.stringContaining('changes nothing') });
  });

  it('rolls back when a later write fails', async () => {
    put('a.txt', 'one\n');
    put('file', 'in the way\n');
    // Free when checked, made impossible by the previous step.
    expect(await patch('*** Update File: a.txt', '@@', '-one', '+1', '*** Add File: way', '+x', '*** Add File: way/below.txt', '+x')).toMatchObject({
      failed: true,
    });
    expect(content('a.txt')).toBe('one\n');
    expect(readdirSync(workspaceDir).toSorted()).toEqual(['a.txt', 'file']);
  });

  it('gives up on patches made to be slow', async () => {
    put('a.txt', 'a\n'.repeat(300_000));
    expect(await patch('*** Update File: a.txt', '@@', ...Array.from({ length: 50_000 }, () => ' a'), '-b', '+c')).toMatchObject({
      failed: true,
      content: expect.stringContaining('too much to compare'),
    });
  });
});

describe('looking around', () => {
  beforeEach(() => {
    put('README.md', '# Title\nNeedle here\nlast\n');
    put('src/a.ts', 'const needle = 1;\nconst other = 2;\n');
    put('src/deep/b.ts', 'nothing\n');
    put('src/c.js', 'needle');
    put('bin/x', Buffer.from([0, 1, 2]));
    put('.gatehouse/offload/other.txt', 'needle of somebody else');
    put('projects/app/.git/config', 'needle');
    put('node_modules/p/index.js', 'needle');
  });

  it('lists a folder, without hidden entries', async () => {
    expect(await call('ls', {})).toEqual({
      content: 'README.md (25 bytes)\nbin/\nnode_modules/\nprojects/\nsrc/',
      source: 'workspace file names in .',
      failed: false,
    });
    expect(await call('ls', { path: 'src/' })).toMatchObject({ content: 'a.ts (35 bytes)\nc.js (6 bytes)\ndeep/' });
    expect(await call('ls', { path: 'nowhere' })).toMatchObject({ failed: true });
  });

  it('finds names by glob', async () => {
    const found = async (pattern: string, more: object = {}) => (await call('find', { pattern, ...more })).content.split('\n');
    expect(await found('*.ts')).toEqual(['src/a.ts', 'src/deep/b.ts']);
    expect(await found('src/*.ts')).toEqual(['src/a.ts']);
    expect(await found('src/**/*.{ts,js}')).toEqual(['src/a.ts', 'src/c.js', 'src/deep/b.ts']);
    expect(await found('[ab].ts', { path: 'src' })).toEqual(['src/a.ts', 'src/deep/b.ts']);
    expect(await found('?.js')).toEqual(['src/c.js']);
    expect(await found('*.ts', { limit: 1 })).toEqual(['src/a.ts', expect.stringContaining('there are more')]);
    expect(await found('*.md.{a')).toEqual(['pattern: a "{" is not closed']);
    expect(await found('other.txt')).toEqual(['No file has such a name']);
    expect(await found('*.js', { path: 'node_modules' })).toEqual(['node_modules/p/index.js']);
  });

  it('searches lines', async () => {
    expect(await call('grep', { pattern: 'needle' })).toEqual({
      content: 'src/a.ts:1: const needle = 1;\nsrc/c.js:1: needle',
      source: 'workspace file lines in .',
      failed: false,
    });
    expect((await call('grep', { pattern: 'needle', ignoreCase: true, glob: '*.md', context: 1 })).content).toBe(
      'README.md-1- # Title\nREADME.md:2: Needle here\nREADME.md-3- last',
    );
    expect((await call('grep', { pattern: '= 1;', literal: true, path: 'src/a.ts' })).content).toBe('src/a.ts:1: const needle = 1;');
    expect((await call('grep', { pattern: '(', literal: true })).content).toBe('No line matches');
    expect(await call('grep', { pattern: '(' })).toMatchObject({ failed: true, content: expect.stringContaining('set literal') });
    expect((await call('grep', { pattern: 'needle', limit: 1 })).content).toMatch(/^src\/a\.ts:1: [^]*there are more/);
  });

  it('stops an expression that would take forever, and its thread', async () => {
    put('evil.txt', `${'a'.repeat(60)}!`);
    const steps: (() => void)[] = [];
    const search = createSearch({ after: (_ms, run) => (steps.push(run), () => {}) });
    const expression = { source: '^(a+)+$', ignoreCase: false, literal: false, context: 0 };
    const running = search({ root: workspaceDir, path: 'evil.txt', glob: undefined, expression, limit: 10 }, new AbortController().signal);
    // The expression never ends: only a search in another thread can be stopped, while this one continues.
    await expect.poll(() => steps.length).toBe(1);
    steps[0]?.();
    await expect(running).rejects.toMatchObject({ code: 'timeout' });
  });
});

describe('descriptions of tool calls', () => {
  const tool = (name: string) => testWorkspaceTools().find((one) => one.name === name) ?? expect.fail(name);

  it('require approval for changes to prompt files, in any spelling', () => {
    for (const path of ['SOUL.md', './USER.md', 'agents.MD', 'ＢＯＯＴ.md']) {
      expect(tool('write').mustAsk?.({ path, content: '' })).toMatch(/is part of the prompt/);
      expect(tool('edit').mustAsk?.({ path, oldText: 'a', newText: 'b', replaceAll: false })).toMatch(/is part of the prompt/);
      for (const step of [`Add File: ${path}`, `Delete File: ${path}`, `Update File: a\n*** Move to: ${path}`])
        expect(tool('apply_patch').mustAsk?.({ patch: `*** Begin Patch\n*** ${step}\n*** End Patch` })).toMatch(/is part of the prompt/);
    }
    expect(tool('write').mustAsk?.({ path: 'notes/SOUL.md', content: '' })).toBeUndefined();
  });

  it('describes a call in one short line', () => {
    expect(tool('write').describe?.({ path: 'a\nb.md', content: 'hü' })).toBe('write a b.md (3 bytes)');
    expect(tool('apply_patch').describe?.({ patch: '*** Begin Patch\n*** Add File: x\n*** Delete File: y\n*** End Patch' })).toBe('apply_patch x, y');
    for (const { name, describe: summarize } of testWorkspaceTools()) {
      const args = {
        path: 'x'.repeat(5000),
        pattern: 'x'.repeat(5000),
        content: '',
        patch: `*** Begin Patch\n*** Add File: ${'x'.repeat(5000)}\n*** End Patch`,
      };
      expect(summarize?.(args).length, name).toBeLessThanOrEqual(200);
    }
  });
});

describe('daemon files in a workspace', () => {
  it('is neither listed nor read: it holds results of other conversations', async () => {
    put('.gatehouse/offload/tn_1_x.txt', 'the result of somebody else');
    put('projects/app/.git/config', '[core]');
    const missing = await call('ls', { path: 'missing' });
    for (const path of ['.gatehouse', '.gatehouse/', '.gatehouse/offload', './.gatehouse/offload', 'projects/app/.git'])
      expect(await call('ls', { path }), path).toEqual(missing);
    expect(await call('read', { path: '.gatehouse/offload/tn_1_x.txt' })).toMatchObject({ failed: true });
  });
});

describe('the event loop', () => {
  it('is blocked by a patch whose lines are missing for a time linear in their number', async () => {
    const miss = (count: number) => {
      const names = Array.from({ length: count }, (_, index) => `x${index}`);
      put('a.txt', [...Array.from({ length: count * 50 }, () => 'abc'), ...names, ''].join('\n'));
      const contexts = names.map((name) => `@@ ${name}`);
      const patch = ['*** Begin Patch', '*** Update File: a.txt', ...contexts, '@@ nowhere', '-q', '*** End Patch'].join('\n');
      return call('apply_patch', { patch });
    };
    expect(await miss(3000)).toMatchObject({ failed: true, content: expect.stringContaining('its "@@" line is not in the file') });
    expect(await cpuGrowth(375, miss)).toBeLessThan(linear);
  });

  it('is not blocked by an edit with an oversized result', async () => {
    put('a.txt', 'a'.repeat(1024 * 1024));
    const answer = await call('edit', { path: 'a.txt', oldText: 'a', newText: 'b'.repeat(1000), replaceAll: true });
    expect(answer).toMatchObject({ failed: true, content: 'The content is larger than 1048576 bytes' });
    expect(await call('edit', { path: 'a.txt', oldText: 'a', newText: '', replaceAll: true })).toMatchObject({ failed: false });
  });

  it('is not blocked by a file of many lines, or by one long line', async () => {
    put('many.txt', Buffer.alloc(16 * 1024 * 1024, '\n'));
    let turns = 0;
    let next = setImmediate(function tick() {
      turns += 1;
      next = setImmediate(tick);
    });
    const { content: lines } = await call('read', { path: 'many.txt', offset: 16_000_000, limit: 2 });
    clearImmediate(next);
    expect(turns).toBeGreaterThan(100);
    expect(lines).toMatch(/^\n\n\[lines 16000000 to 16000001 of 16777216; continue with offset 16000002\]$/);
    put('long.txt', `${'ü'.repeat(1_000_000)}\nnext\n`);
    const { content: shown } = await call('read', { path: 'long.txt' });
    expect(shown).toMatch(
      /^ü{48000}\n\[line 1 is longer: only its first 48000 characters are shown\]\n\[lines 1 to 1 of 2; continue with offset 2\]$/,
    );
    expect((await call('read', { path: 'long.txt', offset: 2 })).content).toBe('next\n[lines 2 to 2 of 2]');
  });
});

describe('invalid patterns of find', () => {
  it.each(['[z-a]', '[a-\\d]'])('%s is an error of the call', async (pattern) => {
    put('a.txt', 'x');
    expect(await call('find', { pattern })).toMatchObject({ failed: true, content: expect.stringMatching(/^pattern: /) });
  });
});
