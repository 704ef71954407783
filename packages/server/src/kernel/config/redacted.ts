import type * as z from 'zod';
import { mapLeaves, redactionMarker } from './secrets.ts';

/**
 * Returns a copy that is safe to show: every leaf that the schema (`.meta({ secret: true })`) or the name of its key marks as
 * secret becomes the marker; `redactText` cleans secrets inside other texts, such as the password of a URL.
 */
export function redactedConfig(schema: z.core.$ZodType, value: unknown, redactText: (text: string) => string): unknown {
  return mapLeaves(schema, value, (leaf, _name, secret) => {
    if (leaf === undefined || leaf === null) return leaf;
    if (secret) return redactionMarker;
    return typeof leaf === 'string' ? redactText(leaf) : leaf;
  });
}

const onlyReferences = /^(?:[^$]{0,16}\$\{[A-Za-z_]\w*\})+$/;

/** True for a text that is made of references, with a short prefix such as `Bearer `: it holds no secret. */
export function isReference(text: string): boolean {
  return onlyReferences.test(text);
}

/** Returns the same of a document whose references are not resolved: they stay. */
export function redactedDocument(schema: z.core.$ZodType, value: unknown, redactText: (text: string) => string): unknown {
  return mapLeaves(schema, value, (leaf, _name, secret) => {
    if (typeof leaf !== 'string') return secret && leaf !== null ? redactionMarker : leaf;
    return secret && !isReference(leaf) ? redactionMarker : redactText(leaf);
  });
}
