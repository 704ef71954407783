import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { runCompiled } from './compiled-file.ts';

const text = `(function(exports,require,module,__filename,__dirname,__url,__import){
exports.sum = (a, b) => a + b;
exports.here = [__filename, __dirname, __url];
exports.separator = require('node:path').sep;
})`;

function createFolder() {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-compiled-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

interface Exports {
  sum(a: number, b: number): number;
  readonly here: readonly string[];
  readonly separator: string;
}

test('a file runs as CommonJS, and with the functions that an earlier run compiled', () => {
  using folder = createFolder();
  const file = join(folder.path, 'program.js');
  writeFileSync(file, text);
  const cached = () => readdirSync(folder.path).filter((name) => name !== 'program.js');
  const first = runCompiled<Exports>(file, folder.path);
  expect(first.exports.sum(1, 2)).toBe(3);
  expect(first.exports.here).toEqual([file, folder.path, pathToFileURL(file).href]);
  expect(cached()).toEqual([]);
  first.keep();
  expect(cached()).toEqual(['program.js.functions']);

  const kept = readFileSync(join(folder.path, 'program.js.functions'));
  const second = runCompiled<Exports>(file, folder.path);
  expect(second.exports.sum(3, 4)).toBe(7);
  writeFileSync(join(folder.path, 'program.js.functions'), 'stays');
  // Accepted functions are not written again.
  second.keep();
  expect(readFileSync(join(folder.path, 'program.js.functions'), 'utf8')).toBe('stays');

  // Damaged ones are refused and replaced. Another name, because this process has compiled the first one.
  const other = join(folder.path, 'other.js');
  writeFileSync(other, text);
  writeFileSync(`${other}.functions`, kept.fill(0, 8, 100));
  const third = runCompiled<Exports>(other, folder.path);
  expect(third.exports.sum(5, 6)).toBe(11);
  third.keep();
  expect(readFileSync(`${other}.functions`).equals(kept)).toBe(false);
});

test('without a folder that can be written nothing is kept and nothing fails', () => {
  using folder = createFolder();
  const file = join(folder.path, 'program.js');
  writeFileSync(file, text);
  const program = runCompiled<Exports>(file, join(folder.path, 'missing'));
  program.keep();
  expect(program.exports.sum(1, 1)).toBe(2);
  expect(readdirSync(folder.path)).toEqual(['program.js']);
});
