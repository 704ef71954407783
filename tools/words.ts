import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exceptions, phrases, type Phrase } from './word-list.ts';

export interface Hit {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly phrase: Phrase;
}

/** Texts of people and programs: generated reference documents follow their sources, fixtures hold texts of others. */
const looked = /\.(?:tsx?|mjs|md|html|css|yaml)$/;
const skipped = /^docs\/reference\/|\/fixtures\/|^packages\/contract\/src\/spec\/|^e2e\/clients\/|^proving\/RESULTS\.md$|^bench\/RESULTS\.md$/;

/** Returns every use of a listed phrase in one text. */
export function findPhrases(file: string, text: string): Hit[] {
  const lines = text.split('\n');
  const starts: number[] = [];
  for (let at = 0, n = 0; n < lines.length; at += (lines[n]?.length ?? 0) + 1, n += 1) starts.push(at);
  const hits: Hit[] = [];
  for (const phrase of phrases) {
    for (const match of text.matchAll(phrase.find)) {
      const line = starts.findLastIndex((start) => start <= match.index);
      const whole = lines[line] ?? '';
      if (exceptions.some((one) => one.file.test(file) && one.line.test(whole))) continue;
      hits.push({ file, line: line + 1, text: match[0], phrase });
    }
  }
  return hits;
}

/** Returns the uses in all files that git knows below `root`, of its work tree or of `revision`. */
export function findAll(root: string, revision?: string): Hit[] {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const names = git(...(revision === undefined ? ['ls-files'] : ['ls-tree', '-r', '--name-only', revision])).split('\n');
  return names
    .filter((name) => looked.test(name) && !skipped.test(name))
    .flatMap((name) => findPhrases(name, revision === undefined ? readFileSync(join(root, name), 'utf8') : git('show', `${revision}:${name}`)));
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { count: { type: 'boolean', default: false }, revision: { type: 'string' } },
  });
  const hits = findAll(process.cwd(), values.revision).filter(({ file }) => positionals.every((prefix) => file.startsWith(prefix)));
  if (values.count) {
    for (const phrase of phrases) console.log(String(hits.filter((hit) => hit.phrase === phrase).length).padStart(6), phrase.write);
  } else for (const { file, line, text, phrase } of hits) console.error(`${file}:${line}  "${text.trim()}": write ${phrase.write}`);
  console.log(`${hits.length} uses of listed phrases`);
  process.exitCode = hits.length > 0 && !values.count ? 1 : 0;
}
