import type * as z from 'zod';
import { mapLeaves, redactionMarker } from './secrets.ts';

/**
 * A copy fit to be shown: every leaf that the schema (`.meta({ secret: true })`) or the name of its key calls secret
 * is the marker; `redactText` cleans what else may hide in a text, such as the password of a URL.
 */
export function redactedConfig(schema: z.core.$ZodType, value: unknown, redactText: (text: string) => string): unknown {
  return mapLeaves(schema, value, (leaf, _name, secret) => {
    if (leaf === undefined || leaf === null) return leaf;
    if (secret) return redactionMarker;
    return typeof leaf === 'string' ? redactText(leaf) : leaf;
  });
}
