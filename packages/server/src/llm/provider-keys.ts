import type { ProviderConfig } from './config.ts';

/** A key of a provider. A provider without any has one without a value, so that each call has a key whose state is known. */
export interface ProviderKey {
  /** Position among the keys of its provider. */
  readonly at: number;
  /** Key of config.yaml below the provider: `apiKey`, `apiKeys[1]`. */
  readonly id: string;
  /** What events and logs call it: a variable, or a key of config.yaml. */
  readonly name: string;
  readonly value: string | undefined;
}

/** Keys of a provider, in the order in which they are used; never empty. */
export type ProviderKeys = readonly [ProviderKey, ...ProviderKey[]];

/** The key of what needs none. */
export const noKey: ProviderKeys = [{ at: 0, id: '', name: '', value: undefined }];

type Configured = Pick<ProviderConfig, 'apiKey' | 'apiKeys'>;

/** Returns the keys that a provider has, each once. */
export function keyValues({ apiKey, apiKeys = [] }: Configured): readonly { readonly id: string; readonly value: string }[] {
  const all = [
    ...(apiKey === undefined ? [] : [{ id: 'apiKey', value: apiKey }]),
    ...apiKeys.map((value, index) => ({ id: `apiKeys[${index}]`, value })),
  ];
  return all.filter(({ value }, index) => all.findIndex((other) => other.value === value) === index);
}

/** Returns the keys of a provider; `name` says what events call the key with an id. */
export function providerKeys(config: Configured, name: (id: string) => string): ProviderKeys {
  const [first, ...others] = keyValues(config).map((key, at) => ({ ...key, at, name: name(key.id) }));
  return first === undefined ? [{ at: 0, id: 'apiKey', name: name('apiKey'), value: undefined }] : [first, ...others];
}
