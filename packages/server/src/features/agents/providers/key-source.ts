import { dotted } from '../../../kernel/config/config-error.ts';
import { referencesIn } from '../../../kernel/config/references-in.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import type { DescribedProvider } from '../../../llm/create-models.ts';

export interface KeySource {
  readonly from: 'environment' | 'store' | 'file';
  readonly name?: string;
}

/** Returns where the key of a provider comes from; undefined when it has none. `text` is config.yaml, `env` the environment without the store. */
export function keySourceOf({ id, source, keyName, hasKey }: DescribedProvider, text: string, env: Environment): KeySource | undefined {
  if (!hasKey) return undefined;
  const name = source === 'environment' ? keyName : referenceAt(text, dotted(['providers', id, 'apiKey']));
  if (name === undefined) return { from: 'file' };
  return { from: (env[name] ?? '') === '' ? 'store' : 'environment', name };
}

function referenceAt(text: string, key: string): string | undefined {
  return [...referencesIn(text)].find(([, keys]) => keys.includes(key))?.[0];
}
