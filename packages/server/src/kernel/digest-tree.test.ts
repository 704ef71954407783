import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { digestTree, type TreeAnswer } from './digest-tree.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gatehouse-tree-'));
  mkdirSync(join(root, 'data/deep'), { recursive: true });
  write('data/run.sh', 'echo one');
});
afterEach(() => rmSync(root, { recursive: true }));

const write = (name: string, text: string | Buffer) => writeFileSync(join(root, name), text);
const link = (name: string, target: string) => symlinkSync(target, join(root, name));
const look = (): TreeAnswer => digestTree({ root, without: ['.gatehouse'] });
const large = (byte: number) => Buffer.alloc(1_100_000, byte);

describe('the digest of a folder differs after', () => {
  it.for<readonly [string, before: () => void, change: () => void]>([
    ['another content of the same length', () => {}, () => write('data/run.sh', 'echo two')],
    ['a new file', () => {}, () => write('data/deep/new', '')],
    ['a file less', () => {}, () => rmSync(join(root, 'data/run.sh'))],
    ['another name', () => {}, () => renameSync(join(root, 'data/run.sh'), join(root, 'data/ran.sh'))],
    ['another name of a folder', () => {}, () => renameSync(join(root, 'data/deep'), join(root, 'data/deeper'))],
    ['a write through a second name elsewhere', () => linkSync(join(root, 'data/run.sh'), join(root, 'b')), () => write('b', 'echo 2')],
    ['another target of a link', () => link('a', 'data'), () => (rmSync(join(root, 'a')), link('a', '/usr'))],
    ['a file that may be run now', () => {}, () => chmodSync(join(root, 'data/run.sh'), 0o700)],
    ['a name that is not text', () => {}, () => writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), '')],
    ['a change of what is hidden', () => {}, () => write('.profile', 'echo')],
    [
      'a write into a large file whose time was set back',
      () => (write('big', large(1)), utimesSync(join(root, 'big'), 1, 1)),
      () => {
        const { ctimeMs } = lstatSync(join(root, 'big'));
        // File systems record time in steps.
        while (lstatSync(join(root, 'big')).ctimeMs === ctimeMs) write('big', large(2));
        utimesSync(join(root, 'big'), 1, 1);
      },
    ],
    [
      'a small write after much that was read',
      () => {
        // Sparse, so that nothing is written.
        for (let index = 0; index < 65; index += 1) {
          write(`a${index}`, '');
          truncateSync(join(root, `a${index}`), 1024 * 1024);
        }
      },
      () => write('data/run.sh', 'echo three'),
    ],
  ])('%s', ([, before, change]) => {
    before();
    const first = look();
    expect(first).toEqual({ digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
    change();
    expect(look()).not.toEqual(first);
  });
});

test('the digest of a folder is the same after a write of the same text, a file that came and went, and changes of what is left out', () => {
  const first = look();
  write('data/run.sh', 'echo one');
  write('data/x', '');
  rmSync(join(root, 'data/x'));
  mkdirSync(join(root, '.gatehouse'));
  write('.gatehouse/x', 'x');
  expect(look()).toEqual(first);
  // The name is left out at the top level only.
  mkdirSync(join(root, 'data/.gatehouse'));
  expect(look()).not.toEqual(first);
});

test('an entry that cannot be compared is named, and a missing folder is an empty one', () => {
  execFileSync('mkfifo', [join(root, 'data/pipe')]);
  expect(look()).toEqual({ refused: '"data/pipe" is a pipe or a device' });
  rmSync(join(root, 'data'), { recursive: true });
  execFileSync('sh', ['-c', 'for i in $(seq 110); do mkdir d; cd d; done'], { cwd: root });
  expect(look()).toEqual({ refused: expect.stringMatching(/^".*\/d" is nested too deeply$/) });
  expect(digestTree({ root: join(root, 'missing'), without: [] })).toMatchObject({ digest: expect.any(String) });
});
