import type { SecretLookup } from './configuration.ts';

/** Environment as a plain record; the entry point passes `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type Resolved =
  /** The text holds no reference. */
  | { readonly kind: 'literal'; readonly text: string }
  /** All references were replaced; `whole` when the text was one reference and nothing else. */
  | { readonly kind: 'resolved'; readonly text: string; readonly whole: boolean }
  | { readonly kind: 'problem'; readonly message: string };

/** Replaces `${NAME}` by what `lookup` returns for the name and `$${` by `${`. A variable that is empty counts as missing. */
export function resolveReferences(text: string, lookup: SecretLookup): Resolved {
  if (!text.includes('${')) return { kind: 'literal', text };
  const missing: string[] = [];
  let malformed = false;
  let references = 0;
  const replaced = text.replaceAll(/\$?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g, (found, name: string | undefined) => {
    if (found.startsWith('$$')) return found.slice(1);
    if (name === undefined) {
      malformed = true;
      return '';
    }
    references++;
    const value = lookup(name);
    if (value === undefined || value === '') missing.push(name);
    return value ?? '';
  });
  if (malformed) return { kind: 'problem', message: 'expected ${NAME} with a name of letters, digits and "_" (write $${ for a literal ${)' };
  if (missing.length > 0)
    return {
      kind: 'problem',
      message: `${missing.join(', ')} is not set (or empty), neither in the environment nor in the secret store; set it, or write $\${…} for literal text`,
    };
  if (references === 0) return { kind: 'literal', text: replaced };
  return { kind: 'resolved', text: replaced, whole: /^\$\{[A-Za-z0-9_]+\}$/.test(text) };
}
