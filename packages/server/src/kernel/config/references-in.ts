import { dotted } from './config-error.ts';
import { readDocument } from './document.ts';
import { resolveReferences } from './references.ts';

/** Returns a configuration as it is written, with its references; undefined for a text that is not valid YAML. */
export function rawDocument(text: string): unknown {
  return readDocument('', text, (value) => value).document?.value;
}

/** Returns the names that a configuration refers to as `${NAME}`, each with the dotted keys that do. Empty for a text that is not valid YAML. */
export function referencesIn(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  readDocument('', text, (value, path) => {
    resolveReferences(value, (name) => {
      const keys = found.get(name) ?? [];
      const key = dotted(path);
      found.set(name, keys.includes(key) ? keys : [...keys, key]);
      return name;
    });
    return value;
  });
  return found;
}
