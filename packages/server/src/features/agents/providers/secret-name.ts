import type { ProviderType } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { dotted } from '../../../kernel/config/config-error.ts';
import { referencesIn } from '../../../kernel/config/references-in.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import { vendors } from '../../../llm/vendors.ts';

/**
 * Returns the name under which the key of a provider is stored: the one that config.yaml has for it, else that of its vendor or of the
 * provider. `env` is the environment without the store.
 * @throws AppError when each of them is a variable of the environment, or used by other keys
 */
export function secretNameOf({ id, type }: { readonly id: string; readonly type: ProviderType }, text: string, env: Environment): string {
  const own = dotted(['providers', id, 'apiKey']);
  const references = referencesIn(text);
  const present = [...references].find(([, keys]) => keys.includes(own))?.[0];
  const names = [present, id === type ? vendors[type].keyEnv[0] : undefined, `${upperCase(id)}_API_KEY`].filter((name) => name !== undefined);
  const isFree = (name: string) => (env[name] ?? '') === '' && (references.get(name) ?? []).every((key) => key === own);
  const free = names.find(isFree);
  if (free !== undefined) return free;
  throw new AppError(
    'precondition_failed',
    `${[...new Set(names)].join(' and ')} cannot hold the key: a variable of the environment has this name, or other keys of config.yaml use it. Change the variable and restart, or choose another id`,
    { param: 'key' },
  );
}

/** Returns a name for a further key of a provider that nothing has or refers to. `environment` includes the store. */
export function furtherSecretName(id: string, text: string, environment: Environment): string {
  const references = referencesIn(text);
  for (let number = 2; ; number += 1) {
    const name = `${upperCase(id)}_${number}_API_KEY`;
    if ((environment[name] ?? '') === '' && !references.has(name)) return name;
  }
}

function upperCase(id: string): string {
  return id
    .toUpperCase()
    .replaceAll('-', '_')
    .replace(/^(?![A-Z])/, 'PROVIDER_');
}
