import { dotted, readPath } from '../../../kernel/config/config-error.ts';
import { referencesIn } from '../../../kernel/config/references-in.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import type { DescribedKey, DescribedProvider } from '../../../llm/create-models.ts';

export interface KeySource {
  readonly from: 'environment' | 'store' | 'file';
  readonly name?: string;
}

/** Returns where a key of a provider comes from. `text` is config.yaml, `env` the environment without the store. */
export function keySourceOf(
  { id: provider, source }: Pick<DescribedProvider, 'id' | 'source'>,
  key: DescribedKey,
  text: string,
  env: Environment,
): KeySource {
  const name = source === 'environment' ? key.name : referenceAt(text, dotted(['providers', provider, ...(readPath(key.id) ?? [])]));
  if (name === undefined) return { from: 'file' };
  return { from: (env[name] ?? '') === '' ? 'store' : 'environment', name };
}

function referenceAt(text: string, key: string): string | undefined {
  return [...referencesIn(text)].find(([, keys]) => keys.includes(key))?.[0];
}
