import { AppError } from '../../../../kernel/app-error.ts';

const maxLength = 500;
const maxAlternatives = 20;

/**
 * Compiles a test for relative paths: `*` and `?` within a name, `**` over folders, `[a-z]`, `{a,b}`. A pattern without "/"
 * matches names in any folder. Fails with `invalid_params` on invalid patterns. Not linear: run it in threads with a deadline.
 */
export function compileGlob(pattern: string): (path: string) => boolean {
  if (pattern.length > maxLength) throw new AppError('invalid_params', `pattern: expected at most ${maxLength} characters`);
  const plain = pattern.replace(/^\.?\//, '');
  const source = sourceOf(plain);
  const test = compileSource(plain.includes('/') ? `^${source}$` : `^(?:.*/)?${source}$`);
  return (path) => test.test(path);
}

function compileSource(source: string): RegExp {
  try {
    return new RegExp(source, 'u');
  } catch (error) {
    throw new AppError('invalid_params', 'pattern: a "[…]" is not a set of characters, such as [a-z]', { cause: error });
  }
}

function sourceOf(pattern: string): string {
  let source = '';
  let depth = 0;
  for (let at = 0; at < pattern.length; at += 1) {
    const rest = pattern.slice(at);
    const [stars] = /^\*\*+\/?/.exec(rest) ?? [];
    if (stars !== undefined) {
      const whole = at === 0 || pattern[at - 1] === '/';
      source += whole && stars.endsWith('/') ? '(?:.*/)?' : '.*';
      at += stars.length - 1;
      continue;
    }
    const [set] = /^\[(?:!|\^)?\]?[^\]/]+\]/.exec(rest) ?? [];
    const character = pattern[at] ?? '';
    if (set !== undefined) {
      source += `(?!/)${set
        .replace(/^\[[!^]/, '[^')
        .replaceAll('\\', '\\\\')
        .replaceAll(/(?<=.)\[/g, '\\[')
        .replaceAll(/(&&|--|~~)/g, '\\-')}`;
      at += set.length - 1;
    } else if (character === '*') source += '[^/]*';
    else if (character === '?') source += '[^/]';
    else if (character === '{') {
      depth += 1;
      source += '(?:';
    } else if (character === '}' && depth > 0) {
      depth -= 1;
      source += ')';
    } else if (character === ',' && depth > 0) source += '|';
    else source += RegExp.escape(character);
  }
  if (depth > 0) throw new AppError('invalid_params', 'pattern: a "{" is not closed');
  if (source.split('|').length > maxAlternatives) throw new AppError('invalid_params', `pattern: at most ${maxAlternatives} alternatives`);
  return source;
}
