import type { Issue } from '@gatehouse/contract';
import type * as z from 'zod';

export interface Issues {
  readonly issues: readonly Issue[];
  /** Paths of fields that the schema does not know, in the order they were sent. */
  readonly unknown: readonly string[];
  /** True when there are more than are reported. */
  readonly more: boolean;
}

/** The report about a body may be thirty times as long as the body. */
const maxIssues = 100;

/**
 * Turns zod's findings into paths and expectations: each unknown field separately, and of a union only the branch that
 * got furthest, which is the one that the caller meant.
 */
export function issuesOf(error: z.ZodError): Issues {
  const issues: Issue[] = [];
  const unknown: string[] = [];
  let more = false;
  const report = (path: string, message: string): void => {
    if (issues.length === maxIssues) more = true;
    else issues.push({ path, message });
  };
  const add = (issue: z.core.$ZodIssue, prefix: readonly PropertyKey[]): void => {
    if (more) return;
    const path = [...prefix, ...issue.path];
    if (issue.code === 'unrecognized_keys') {
      const fields = issue.keys.slice(0, maxIssues + 1).map((key) => [...path, key].join('.'));
      unknown.push(...fields);
      for (const field of fields) report(field, 'unknown field');
    } else if (issue.code === 'invalid_union' && issue.message === 'Invalid input' && issue.errors.length > 0) {
      const wanted = anyOf(issue.errors);
      if (wanted !== undefined) report(path.join('.'), wanted);
      else for (const inner of furthest(issue.errors)) add(inner, path);
    } else {
      report(path.join('.'), wording(issue));
    }
  };
  for (const issue of error.issues) add(issue, []);
  return { issues, unknown, more };
}

function furthest(branches: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] {
  const depth = (branch: readonly z.core.$ZodIssue[]): number =>
    branch.reduce((deepest, issue) => Math.max(deepest, issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0)), 0);
  return branches.reduce((best, branch) => (depth(branch) > depth(best) ? branch : best));
}

/** Returns one message for a value of none of the types that a union accepts; undefined when one branch accepted its type. */
function anyOf(branches: readonly (readonly z.core.$ZodIssue[])[]): string | undefined {
  const found = branches.map(([issue, ...others]) =>
    others.length === 0 && issue?.code === 'invalid_type' && issue.path.length === 0 ? mismatch.exec(issue.message) : null,
  );
  const received = found[0]?.[2];
  if (received === undefined || found.some((one) => one === null)) return undefined;
  return required(`Invalid input: expected ${[...new Set(found.map((one) => one?.[1]))].join(' or ')}, received ${received}`);
}

const mismatch = /^Invalid input: expected (.+), received (\w+)$/;

/** Returns what was expected, in this project's wording when the schema has no message. */
function wording(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined && issue.message.endsWith('received undefined')) return required(issue.message);
  if (issue.code === 'too_small' && issue.message.startsWith('Too small: ')) return `expected ${amount('at least', issue.minimum, issue.origin)}`;
  if (issue.code === 'too_big' && issue.message.startsWith('Too big: ')) return `expected ${amount('at most', issue.maximum, issue.origin)}`;
  return issue.message
    .replace(/^Invalid (?:input|option|discriminator value)[:.] ?/, '')
    .replace(/^Expected /, 'expected ')
    .replace(/^expected one of |^expected (?='[^']*' \|)/, 'expected ')
    .replaceAll(/["']([^"'|]*)["'] ?\| ?(?=["'])/g, '"$1" or ')
    .replace(/ or '([^']*)'$/, ' or "$1"');
}

function amount(bound: string, count: number | bigint, origin: string): string {
  const unit = origin === 'string' ? 'character' : origin === 'array' || origin === 'set' ? 'item' : undefined;
  if (unit === undefined) return `a number of ${bound} ${count}`;
  return `${bound} ${count} ${unit}${Number(count) === 1 ? '' : 's'}`;
}

function required(message: string): string {
  return message.endsWith('received undefined')
    ? `required, ${message.replace(/^Invalid input: /, '').replace(/, received undefined$/, '')}`
    : message.replace(/^Invalid input: /, '');
}

/** Joins all of them into one sentence. */
export function sentenceOf({ issues, more }: Issues): string {
  const sentences = issues.map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`));
  return [...sentences, ...(more ? ['and more'] : [])].join('; ');
}
