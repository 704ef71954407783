import * as z from 'zod';
import { dotted, type Path } from './config-error.ts';
import { nearest } from './nearest.ts';
import { bare, expectation, isSecretPath, keysOf, schemaAt } from './schema-walk.ts';

type Issue = z.core.$ZodIssue;

export interface Finding {
  readonly path: Path;
  /** True when the key is wrong rather than the value. */
  readonly atKey: boolean;
  /** The dotted key to print. */
  readonly key: string;
  readonly message: string;
}

/**
 * Explains a failed parse for people. `found` describes the value that is there; undefined when it must not be shown.
 */
export function findingsOf(
  issues: readonly Issue[],
  context: { readonly schema: z.core.$ZodType; readonly value: unknown; readonly hidden: (path: Path) => boolean },
): Finding[] {
  const { schema, value, hidden } = context;

  function finding(issue: Issue, base: Path): Finding[] {
    const path: Path = [...base, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
    const at = (message: string, where: Path = path, atKey = false): Finding => ({ path: where, atKey, key: dotted(where), message });
    const here = schemaAt(schema, path);
    const found = describeFound(valueAt(value, path), hidden(path) || isSecretPath(schema, path));

    switch (issue.code) {
      case 'unrecognized_keys': {
        const valid = here === undefined ? [] : keysOf(here);
        return issue.keys.map((key) => at(unknownKey(key, valid), [...path, key], true));
      }
      case 'invalid_key':
        return [at(`this name cannot be used: ${issue.issues[0]?.message ?? 'expected another name'}`, path, true)];
      case 'invalid_type':
        if (valueAt(value, path) === undefined) return [at(`is missing; expected ${here === undefined ? issue.expected : expectation(here)}`)];
        return [at(`expected ${here === undefined ? issue.expected : expectation(here)}, found ${found}`)];
      case 'invalid_value': {
        const given = valueAt(value, path);
        const options = issue.values.filter((option) => typeof option === 'string');
        const meant = typeof given === 'string' && found.startsWith('"') ? nearest(given, options) : undefined;
        return [
          at(
            `expected ${here === undefined ? `one of ${issue.values.map((option) => JSON.stringify(option)).join(', ')}` : expectation(here)}, found ${found}${meant === undefined ? '' : `; did you mean "${meant}"?`}`,
          ),
        ];
      }
      case 'too_small':
      case 'too_big':
        return [at(`expected ${limit(issue, here)}, found ${sizeOf(valueAt(value, path), found)}`)];
      case 'invalid_union': {
        // The branch that got furthest is probably the intended one.
        const branches = issue.errors.map((errors) => errors.flatMap((error) => finding(error, path)));
        const deepest = branches.toSorted((a, b) => depthOf(b) - depthOf(a) || a.length - b.length)[0];
        if (deepest !== undefined && depthOf(deepest) > path.length) return deepest;
        return [at(`expected ${here === undefined ? 'another value' : expectation(here)}, found ${found}`)];
      }
      case 'invalid_format':
      case 'custom':
      case 'not_multiple_of':
      case 'invalid_element':
        return [at(`${describeExpected(issue, here)}, found ${found}`)];
    }
  }

  return issues.flatMap((issue) => finding(issue, []));
}

function unknownKey(key: string, valid: readonly string[]): string {
  const glued = /^([\w-]+)[:=]./.exec(key)?.[1];
  if (glued !== undefined && valid.includes(glued)) return `a space is missing after "${glued}:"`;
  const meant = nearest(key, valid);
  if (meant !== undefined) return `unknown key; did you mean "${meant}"?`;
  return valid.length === 0 ? 'unknown key; no key is expected here' : `unknown key; expected one of ${valid.join(', ')}`;
}

function describeExpected(issue: Issue, schema: z.core.$ZodType | undefined): string {
  // The project's own schemas say what they expect; zod's messages start differently.
  if (/^(expected|must|may|needs?)\b/i.test(issue.message)) return issue.message;
  if (issue.code === 'custom') return issue.message === 'Invalid input' ? 'expected another value' : issue.message;
  return `expected ${schema === undefined ? 'another form' : expectation(schema)}`;
}

function limit(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, schema: z.core.$ZodType | undefined): string {
  const [side, edge] = issue.code === 'too_small' ? ['at least', issue.minimum] : ['at most', issue.maximum];
  const unit = issue.origin === 'string' ? 'characters' : issue.origin === 'array' ? 'items' : undefined;
  if (unit === undefined) return schema === undefined || !(bare(schema) instanceof z.ZodNumber) ? `${side} ${edge}` : expectation(schema);
  return issue.code === 'too_small' && edge === 1 && unit === 'characters'
    ? 'text that is not empty'
    : `${side} ${edge} ${Number(edge) === 1 ? unit.slice(0, -1) : unit}`;
}

function sizeOf(given: unknown, found: string): string {
  if (typeof given === 'string') return given.length === 1 ? '1 character' : `${given.length} characters`;
  return Array.isArray(given) ? String(given.length) : found;
}

function depthOf(findings: readonly Finding[]): number {
  return Math.max(0, ...findings.map((one) => one.path.length));
}

function valueAt(value: unknown, path: Path): unknown {
  let current: unknown = value;
  for (const part of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = Reflect.get(current, part);
  }
  return current;
}

/**
 * Describes the value that was found. It may be a secret in the wrong place (a line lost its key, a colon its space), so only
 * short plain words are repeated, shorter than any secret worth the name.
 */
function describeFound(given: unknown, hide: boolean): string {
  if (given === undefined) return 'nothing';
  if (given === null) return 'nothing (an empty value)';
  if (Array.isArray(given)) return 'a list';
  if (typeof given === 'object') return 'a section';
  if (typeof given !== 'string') return hide ? `a ${typeof given}` : String(given);
  if (given === '') return 'empty text';
  return !hide && /^[\w./-]{1,24}$/.test(given) ? JSON.stringify(given) : `text of ${given.length} characters`;
}
