import type { SkillFinding } from '@gatehouse/contract';
import { setImmediate as nextRound } from 'node:timers/promises';
import { foldText, hiddenCharacters } from '../../../../runtime/hidden-text.ts';
import { type ContentRule, contentRules, hiddenOrder } from './content-rules.ts';

/** Characters that are scanned before yielding to others: well below what a person notices. */
const perRound = 8_192;
/** A unit is searched whole; longer ones in overlapping chunks. */
const unitCharacters = 2_000;
const overlap = 400;
const maxFindings = 100;
const sliceCharacters = 65_536;
/** A comment that begins in one chunk ends in the next. */
const sliceOverlap = 8_192;

interface Unit {
  readonly line: number;
  readonly text: string;
}

const tagOrOverride = /[\u{e0000}-\u{e007f}\u202a-\u202e\u2066-\u2069]/u;
const hiddenRun =
  /(?:[\ufe00-\ufe0f\u115f\u1160\u180e\u200b\u2060-\u2064\u3164\ufeff\ufff9-\ufffb]|[\u034f]|[\u17b4\u17b5]|[\u{e0100}-\u{e01ef}]){3}/u;
const hiddenOne = /[\u034f\u200b\u2060-\u2064\u180e\u00ad]|(?!^)\ufeff/u;
/** Hidden characters inside a word, which would split a match. Other scripts need joiners. */
const hiddenInWord = /[a-z0-9][\u034f\u200b-\u200d\u2060-\u2064\u180e\ufeff]{1,8}[a-z0-9]/iu;

/** Letters of other scripts that look like Latin ones. */
const lookAlikes: Readonly<Record<string, string>> = {
  а: 'a',
  е: 'e',
  о: 'o',
  р: 'p',
  с: 'c',
  у: 'y',
  х: 'x',
  і: 'i',
  ѕ: 's',
  ј: 'j',
  ԁ: 'd',
  һ: 'h',
  ո: 'n',
  ѵ: 'v',
  α: 'a',
  ο: 'o',
  ν: 'v',
  ι: 'i',
  ρ: 'p',
};
const lookAlike = new RegExp(`[${Object.keys(lookAlikes).join('')}]`, 'gu');

/** Folds text as a shell or a model reads it: plain letters, nothing invisible, no empty quotes or expansions inside words. */
function plainForms(text: string): readonly string[] {
  const ascii = /^[\t\n\r\u0020-\u007e]*$/.test(text);
  const folded = ascii ? text : foldText(text.replace(hiddenCharacters, '')).replace(lookAlike, (letter) => lookAlikes[letter] ?? letter);
  const bare = folded
    .replace(/(?<=\w)(?:""|'')(?=\w)|\\(?=[a-z])(?<![\\\w]\\)|(?<=\w)\\(?=\w)/g, '')
    .replace(/(?<=\w)\$(?:[@*\d]|\{[@*\d][^}\s]{0,8}\})(?=\w)/g, '')
    .replace(/\$\{?IFS\}?(?:\$\d)?/g, ' ');
  const spaced = /(?:\b[a-z] ){5}/i.test(folded) ? folded.replace(/\b([a-z]) (?=[a-z]\b)/gi, '$1') : folded;
  return [...new Set([folded, bare, spaced])];
}

/** Scans a text of a skill; yields to others meanwhile. `isCode`: a script, in which all is code. */
export async function scanText(file: string, text: string, { isCode }: { readonly isCode: boolean }): Promise<SkillFinding[]> {
  const found = new Map<string, SkillFinding>();
  const report = ({ id, severity, category, description }: ContentRule, line: number) => {
    if (!found.has(id) && found.size < maxFindings) found.set(id, { file, line, rule: id, severity, category, description });
  };
  const { lines, blocks, prose } = unitsOf(text, isCode);
  let since = 0;
  const search = async (units: readonly Unit[], over: ContentRule['over']) => {
    const rules = contentRules.filter((each) => each.over === over);
    for (const { line, text: unit } of units) {
      for (const form of plainForms(unit)) for (const each of rules) if (!found.has(each.id) && each.matches.test(form)) report(each, line);
      since += unit.length;
      if (since > perRound) {
        since = 0;
        await nextRound();
      }
    }
  };
  await search(lines, 'line');
  await search(blocks, 'block');
  await search(prose, 'prose');
  for (const slice of slices(text)) {
    reportHidden(slice, file, found);
    for (const { line, text: comment } of commentsOf(slice))
      if (plainForms(comment).some((form) => hiddenOrder.matches.test(form))) report(hiddenOrder, line);
    for (const { line, text: blob } of encodedIn(slice)) {
      const inner = Buffer.from(blob, 'base64').toString('utf8');
      if (!/^[\t\n\r\u0020-\u007e]{12,}/.test(inner)) continue;
      if (contentRules.some((each) => each.severity === 'CRITICAL' && each.over !== 'prose' && each.matches.test(inner.slice(0, unitCharacters))))
        report({ ...hiddenOrder, id: 'OBF_BASE64_HIDES', category: 'obfuscation', description: 'hides a dangerous command in base64' }, line);
    }
    await nextRound();
  }
  return [...found.values()];
}

function reportHidden({ line, text }: Unit, file: string, found: Map<string, SkillFinding>): void {
  const lineAt = (index: number) => lineIn({ line, text }, index);
  const hidden = tagOrOverride.exec(text) ?? hiddenRun.exec(text) ?? hiddenInWord.exec(text);
  const about = { file, category: 'hidden' };
  if (hidden !== null && !found.has('HIDDEN_TEXT'))
    found.set('HIDDEN_TEXT', {
      ...about,
      line: lineAt(hidden.index),
      rule: 'HIDDEN_TEXT',
      severity: 'CRITICAL',
      description: 'holds text that no reader sees',
    });
  else {
    const one = hiddenOne.exec(text);
    if (one !== null)
      found.set('HIDDEN_CHARACTER', {
        ...about,
        line: lineAt(one.index),
        rule: 'HIDDEN_CHARACTER',
        severity: 'WARN',
        description: 'holds an invisible character',
      });
  }
}

/** Splits what is searched as a whole into overlapping chunks, so that none blocks others. */
function* slices(text: string): Generator<Unit> {
  let line = 1;
  for (let from = 0; from === 0 || from < text.length - sliceOverlap; from += sliceCharacters - sliceOverlap) {
    yield { line, text: text.slice(from, from + sliceCharacters) };
    line += text.slice(from, from + sliceCharacters - sliceOverlap).split('\n').length - 1;
  }
}

const lineIn = ({ line, text }: Unit, index: number): number => line + text.slice(0, index).split('\n').length - 1;

function* pieces(line: number, text: string): Generator<Unit> {
  for (let from = 0; from === 0 || from < text.length - overlap; from += unitCharacters - overlap)
    yield { line, text: text.slice(from, from + unitCharacters) };
}

/** Commands with their continuation lines; neighbouring lines; and the same without code. */
function unitsOf(
  text: string,
  isCode: boolean,
): { readonly lines: readonly Unit[]; readonly blocks: readonly Unit[]; readonly prose: readonly Unit[] } {
  const lines: Unit[] = [];
  const blocks: Unit[] = [];
  const prose: Unit[] = [];
  let command: { line: number; text: string } | undefined;
  let block: { line: number; parts: string[] } = { line: 1, parts: [] };
  let paragraph: { line: number; parts: string[] } = { line: 1, parts: [] };
  let fenced = false;
  const endBlock = (line: number) => {
    if (block.parts.length > 0) blocks.push(...pieces(block.line, block.parts.join(' ; ')));
    block = { line, parts: [] };
  };
  const endParagraph = (line: number) => {
    if (paragraph.parts.length > 0) prose.push(...pieces(paragraph.line, paragraph.parts.join(' ')));
    paragraph = { line, parts: [] };
  };
  text.split(/\r\n|[\n\r\u2028\u2029\u0085\v\f]/).forEach((raw, index) => {
    const number = index + 1;
    const fence = !isCode && /^\s{0,12}(?:```|~~~)/.test(raw);
    if (fence) fenced = !fenced;
    command =
      command === undefined
        ? { line: number, text: raw }
        : { line: command.line, text: `${command.text.replace(/[\\`^]\s*$/, ' ')}${raw.trimStart()}` };
    if (!/(?:\\|\|\|?|&&)\s*$/.test(raw) || command.text.length > unitCharacters * 4) {
      lines.push(...pieces(command.line, command.text));
      command = undefined;
    }
    if (raw.trim() === '' || fence) {
      // Code continues over an empty line, and so does its effect.
      if (!fenced && !isCode) endBlock(number + 1);
      endParagraph(number + 1);
      return;
    }
    block.parts.push(raw.trim().replace(/\\$/, ''));
    if (block.parts.length >= 40) endBlock(number + 1);
    // Instructions to a model work inside code as well; only what a shell would read is omitted.
    paragraph.parts.push(raw.trim());
    if (paragraph.parts.length >= 40) endParagraph(number + 1);
  });
  if (command !== undefined) lines.push(...pieces(command.line, command.text));
  endBlock(0);
  endParagraph(0);
  return { lines, blocks, prose };
}

/** Finds comments of HTML, also unclosed ones, and of Markdown. By hand: a regular expression would restart at each of many beginnings. */
function* commentsOf(slice: Unit): Generator<Unit> {
  const { text } = slice;
  for (let from = text.indexOf('<!--'); from >= 0;) {
    const end = text.indexOf('-->', from + 4);
    const to = Math.min(end < 0 ? text.length : end, from + sliceOverlap);
    yield { line: lineIn(slice, from), text: text.slice(from + 4, to).replace(/\s+/g, ' ') };
    from = text.indexOf('<!--', to);
  }
  for (const match of text.matchAll(/^\[(?:\/\/|comment)\]:\s{0,4}#?\s{0,4}[("'<](.{1,2000})$/gim))
    yield { line: lineIn(slice, match.index), text: match[1] ?? '' };
}

function* encodedIn(slice: Unit): Generator<Unit> {
  let count = 0;
  for (const match of slice.text.matchAll(/[A-Za-z0-9+/]{24,4000}={0,2}/g)) {
    if ((count += 1) > 200) return;
    yield { line: lineIn(slice, match.index), text: match[0] };
  }
}
