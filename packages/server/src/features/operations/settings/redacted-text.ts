import type * as z from 'zod';
import { isScalar, LineCounter, parseDocument, type Scalar, visit } from 'yaml';
import { isSecretName, redactionMarker } from '../../../kernel/config/secrets.ts';
import { isReference } from '../../../kernel/config/redacted.ts';
import { isSecretPath } from '../../../kernel/config/schema-walk.ts';

/** Shorter values occur in other words. */
const leastSecret = 6;

/**
 * Returns the lines of a YAML text with its secrets replaced, as many as it has. Each value that the schema or its key marks as secret is
 * replaced, also where it is repeated (in a comment); a reference such as `${NAME}` stays. Nothing of a text that is not valid is shown.
 */
export function redactedLines(schema: z.core.$ZodType, text: string, redactText: (text: string) => string): string[] {
  const lines = text.split('\n');
  const counter = new LineCounter();
  const document = parseDocument(text.replace(/^\uFEFF/, ' '), {
    lineCounter: counter,
    stringKeys: true,
    uniqueKeys: false,
    version: '1.2',
    logLevel: 'error',
  });
  if (document.errors.length > 0) return lines.map((line) => (line.trim() === '' ? line : redactionMarker));
  const secrets = new Set<string>();
  const hidden: (readonly [from: number, to: number])[] = [];
  const consider = (node: Scalar, path: readonly (string | number)[]): void => {
    const name = path.findLast((part) => typeof part === 'string') ?? '';
    const isNamed = typeof node.value === 'string' && path.some((part) => typeof part === 'string' && isSecretName(part));
    if (!node.range || !(isNamed || isSecretPath(schema, path))) return;
    const value = String(node.value);
    if (value === '' || isReference(value) || isHarmless(name, node.value)) return;
    hidden.push([node.range[0], node.range[1]]);
    for (const line of value.split('\n')) if (line.trim().length >= leastSecret) secrets.add(line.trim());
  };
  visit(document, {
    Scalar: (key, node, parents) => (key === 'key' ? undefined : consider(node, pathOf([...parents, node]))),
    Alias(_key, node, parents) {
      const resolved = node.resolve(document);
      if (isScalar(resolved)) consider(resolved, pathOf([...parents, node]));
      else if (resolved !== undefined) {
        const path = pathOf([...parents, node]);
        visit(resolved, { Scalar: (key, part, above) => (key === 'key' ? undefined : consider(part, [...path, ...pathOf([...above, part])])) });
      }
    },
  });
  for (const [from, to] of hidden) hide(lines, text, from, to);
  return lines.map((line) => redactText([...secrets].reduce((shown, secret) => shown.replaceAll(secret, redactionMarker), line)));
}

/** True for a switch or a number in a section that is secret as a whole: it reveals nothing. */
function isHarmless(name: string, value: unknown): boolean {
  return typeof value !== 'string' && !isSecretName(name);
}

/** Replaces the characters of a range on each of its lines. */
function hide(lines: string[], text: string, from: number, to: number): void {
  let start = 0;
  for (const [index, line] of text.split('\n').entries()) {
    const [first, last] = [Math.max(from, start), Math.min(to, start + line.length)];
    if (first < last) {
      const before = line.slice(0, first - start);
      const part = text.slice(first, last);
      const blank = /^\s*/.exec(part)?.[0] ?? '';
      if (part.trim() !== '') lines[index] = before + blank + redactionMarker + line.slice(last - start);
    }
    start += line.length + 1;
  }
}

/** Returns the path of a node from those that hold it. */
function pathOf(nodes: readonly unknown[]): (string | number)[] {
  const path: (string | number)[] = [];
  for (const [index, node] of nodes.entries()) {
    if (typeof node !== 'object' || node === null) continue;
    if ('key' in node && isScalar(node.key)) path.push(String(node.key.value));
    else if ('items' in node && Array.isArray(node.items)) {
      const at = node.items.indexOf(nodes[index + 1]);
      const next: unknown = nodes[index + 1];
      if (at !== -1 && !(typeof next === 'object' && next !== null && 'key' in next)) path.push(at);
    }
  }
  return path;
}
