import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { Io } from '../io.ts';
import { withLook } from './look.ts';
import { renderTable, renderTime } from './table.ts';

const now = Date.UTC(2026, 10, 29, 12, 0);
const rows = [
  ['A conversation with a title that is long', 'done', renderTime(now - 5 * 60_000), 'sr_0199e0a0-7c00-7000-8000-00000a1b2c3d'],
  ['Another', 'failed: server', renderTime(now + 2 * 3_600_000), 'cv_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'],
  ['日本語のとても長い題名です', 'waiting', renderTime(now - 30_000), '└─ root-rpc-0199e0a0-7c00-7000-8000-0000deadbeef'],
];
const table = () => renderTable(['Title', 'State', 'Used', 'Id'], rows);

function on(columns: number, env: Record<string, string> = {}) {
  const io = { stdout: Object.assign(new PassThrough(), { isTTY: true, columns }), env, now: () => now };
  return withLook(io as unknown as Io, table);
}

test('on a terminal a table fits: short ids, relative times, coloured states, no line wraps', () => {
  const plain = on(60, { NO_COLOR: '1' });
  expect(plain).toMatch(/^A conv.*…  done +5 min ago +sr_0a1b2c3d$/m);
  expect(plain).toMatch(/^Another +failed: server +in 2 h +cv_47DEQpj8$/m);
  expect(plain).toMatch(/^日本語.*…? +waiting +1 min ago +└─ root-rpc-/m);
  for (const line of plain.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
  expect(on(200, { NO_COLOR: '1' })).toContain('root-rpc-deadbeef');
  const coloured = on(100);
  expect(coloured).toContain('\u001b[32mdone\u001b[39m');
  expect(coloured).toContain('\u001b[31mfailed: server\u001b[39m');
  expect(coloured).toContain('\u001b[33mwaiting\u001b[39m');
});

test('elsewhere everything is complete', () => {
  const text = table();
  expect(text).toContain('sr_0199e0a0-7c00-7000-8000-00000a1b2c3d');
  expect(text).toContain('2026-11-29 11:55 UTC');
  expect(text).toContain('A conversation with a title that is long');
});
