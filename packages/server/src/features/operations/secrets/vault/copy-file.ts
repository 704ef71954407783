import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import { checkPrivate, readOwnFile, replaceOwnFile } from '../../../../kernel/private-file.ts';

/** The content of the sealed copy. */
export interface SecretCopy {
  /** Fingerprint of the install key that sealed the values. */
  readonly key: string;
  /** Sealed values by name. */
  readonly secrets: Readonly<Record<string, string>>;
}

const Copy = z.strictObject({ version: z.literal(1), key: z.string(), secrets: z.record(z.string(), z.string()) });

/** More than the most secrets of the longest values can take. */
const maxBytes = 64 * 1024 * 1024;

/**
 * Reads the copy; undefined when there is none, or its content is not a copy: it is written again from the database.
 * @throws UnsafePathError when others have access
 */
export function readCopy(file: string): SecretCopy | undefined {
  const found = readOwnFile(file, { maxBytes });
  if (found === undefined) return undefined;
  checkPrivate(file, found.stats, '600');
  try {
    return Copy.parse(parseJson(found.text));
  } catch {
    return undefined;
  }
}

/** Replaces the copy in one step. */
export function writeCopy(file: string, { key, secrets }: SecretCopy): void {
  replaceOwnFile(file, `${JSON.stringify({ version: 1, key, secrets }, null, 2)}\n`);
}
