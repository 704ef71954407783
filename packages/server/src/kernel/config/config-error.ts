import { parseJson } from '../json.ts';

/** One thing that is wrong with the configuration, and where. Never holds the value of a secret. */
export interface ConfigProblem {
  /** A file, or another source of the value: a command-line option, an environment variable. */
  readonly source: string;
  /** 1-based; absent when the source is not a file. */
  readonly line?: number;
  readonly column?: number;
  /** Dotted key, as in `gateway.tokens[0].secret`; absent when the problem is with the whole file. */
  readonly key?: string;
  /** What was expected and what was found, in one line. */
  readonly message: string;
}

/** The configuration cannot be used. `message` lists every problem, one line each, as `file:line:column: key: text`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

function describeProblem(problem: ConfigProblem): string {
  const place = problem.line === undefined ? problem.source : `${problem.source}:${problem.line}:${problem.column ?? 1}`;
  return problem.key === undefined ? `${place}: ${problem.message}` : `${place}: ${problem.key}: ${problem.message}`;
}

export type Path = readonly (string | number)[];

/** Formats a path as `gateway.tokens[0].secret`; parts that are not plain words are quoted. */
export function dotted(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[\w$-]{1,64}$/.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${shownKey(part)}]`;
  }
  return text;
}

/** Parses a path as `dotted` formats it; `list.0` means `list[0]`. Returns undefined for any other text. */
export function readPath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  const part = /\.?([\w$@/-]+)|\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\]/y;
  for (let at = 0; at < text.length; at = part.lastIndex) {
    const found = part.exec(text);
    const isFirst = at === 0;
    if (found === null || isFirst !== /^[\w$@/-]/.test(found[0])) return undefined;
    const [, word, index, quoted] = found;
    if (word !== undefined) path.push(/^\d{1,6}$/.test(word) && !isFirst ? Number(word) : word);
    else path.push(index === undefined ? String(parseJson(quoted ?? '""')) : Number(index));
  }
  return path.length === 0 ? undefined : path;
}

/**
 * Returns a key in a form that may be printed. A forgotten space (`apiKey:sk-…`) makes a secret part of a key, so nothing
 * after a colon or equals sign is shown, and nothing that does not look like a key.
 */
export function shownKey(key: string): string {
  const word = /^[\w$@/.-]{1,40}(?=[:=]|$)/.exec(key)?.[0];
  if (word === undefined) return `a key of ${key.length} characters`;
  return word.length === key.length ? `"${word}"` : `"${word}…"`;
}
