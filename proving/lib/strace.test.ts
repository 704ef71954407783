import { expect, test } from 'vitest';
import { parseStrace } from './strace.ts';

const hex = (text: string) => [...Buffer.from(text, 'latin1')].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

test('reads calls with their descriptor, their bytes and the order of start and return', () => {
  const trace = [
    `7 pwrite64(21<${hex('/home/a-b/data/x.db-wal')}>, "${hex('page with "quotes" > and more')}", 29, 56) = 29`,
    `7 fdatasync(21<${hex('/home/a-b/data/x.db-wal')}> <unfinished ...>`,
    `5 writev(30<TCP:[127.0.0.1:4766->127.0.0.1:50000]>, [{iov_base="${hex('HTTP/1.1 ')}", iov_len=9}, {iov_base="${hex('200 OK')}", iov_len=6}], 2) = 15`,
    '7 <... fdatasync resumed>) = 0',
    '5 +++ killed by SIGKILL +++',
  ].join('\n');
  expect(parseStrace(trace)).toEqual([
    { thread: '7', name: 'pwrite64', fd: '21', on: '/home/a-b/data/x.db-wal', data: 'page with "quotes" > and more', start: 1, end: 1 },
    { thread: '7', name: 'fdatasync', fd: '21', on: '/home/a-b/data/x.db-wal', data: '', start: 2, end: 4 },
    { thread: '5', name: 'writev', fd: '30', on: 'TCP:[127.0.0.1:4766->127.0.0.1:50000]', data: 'HTTP/1.1 200 OK', start: 3, end: 3 },
  ]);
});

test('a call that never returned has no end', () => {
  expect(parseStrace(`7 fsync(21<${hex('/x-wal')}> <unfinished ...>\n7 +++ killed by SIGKILL +++`)).toMatchObject([
    { name: 'fsync', end: Number.POSITIVE_INFINITY },
  ]);
});
