import { isDeepStrictEqual } from 'node:util';
import { isSection } from '@gatehouse/contract';
import type * as z from 'zod';
import { isSecret, step } from './schema-walk.ts';

/** Replaces a secret in output; refused as a value on every write. */
export const redactionMarker = '[REDACTED]';

const secretName =
  /(?:^|[a-z0-9_-])(?:token|secret|password|passwd|passphrase|api[_-]?key|private[_-]?key|master[_-]?key|access[_-]?key|credentials?|authorization|cookie)$/i;

/** True for names that conventionally hold a secret: `apiKey`, `webhook_secret`, `hmacToken`, but not `maxTokens` or `tokens`. */
export function isSecretName(name: string): boolean {
  return secretName.test(name);
}

type Visit = (text: unknown, name: string, secret: boolean) => unknown;

/** Rebuilds `value`; `visit` gets each leaf and whether the schema or the key's name marks it as secret. */
export function mapLeaves(given: z.core.$ZodType | undefined, value: unknown, visit: Visit, name = '', inherited = false): unknown {
  // A section that the file does not have holds no secret, and its schema need not be built.
  const schema = given !== undefined && isSection(given) && isDeepStrictEqual(value, given.def.defaultValue) ? undefined : given;
  const secret = inherited || (schema !== undefined && isSecret(schema));
  if (Array.isArray(value)) return value.map((item, index) => mapLeaves(schema && step(schema, index), item, visit, name, secret));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        mapLeaves(
          schema && step(schema, key),
          item,
          visit,
          key,
          secret || (typeof item === 'string' && isSecretName(key)) || (isSecretName(key) && typeof item === 'object'),
        ),
      ]),
    );
  }
  return visit(value, name, secret);
}

/**
 * Returns the secret texts of a configuration, for the redactor. In a section that is secret as a whole (request headers)
 * only values whose name suggests a secret count: hiding every harmless value would make the log unreadable.
 */
export function liveSecrets(schema: z.core.$ZodType, value: unknown): string[] {
  const found = new Set<string>();
  mapLeaves(schema, value, (leaf, name, secret) => {
    const hasSecretName = isSecretName(name) || /key|auth|token|secret/i.test(name);
    if (secret && typeof leaf === 'string' && leaf !== '' && hasSecretName) found.add(leaf);
    return leaf;
  });
  return [...found];
}
