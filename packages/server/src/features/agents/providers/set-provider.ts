import type { Params, ResultInput } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Edit } from '../../../kernel/config/edit.ts';
import { rawDocument } from '../../../kernel/config/references-in.ts';
import type { DescribedProvider } from '../../../llm/create-models.ts';
import { vendors } from '../../../llm/vendors.ts';
import type { SecretsApi } from '../../operations/secrets/api.ts';
import type { SettingsApi } from '../../operations/settings/api.ts';
import { furtherSecretName, secretNameOf } from './secret-name.ts';

export interface SetProviderDeps {
  readonly settings: Pick<SettingsApi, 'change'>;
  readonly secrets: Pick<SecretsApi, 'replace' | 'environment'>;
  readonly readText: () => string;
  /** Environment of the daemon, without the secret store. */
  readonly env: SecretsApi['environment'];
}

type Asked = Params<'providers.set'>;

const Written = z.looseObject({
  providers: z.record(z.string(), z.looseObject({ apiKey: z.string().optional(), apiKeys: z.array(z.string()).optional() })),
});

/**
 * Adds or changes a provider. `present` is the one of the catalog with this id, `removed` are ids of keys that it has. Keys are stored
 * first: the configuration is never without one that it refers to. Calls must not overlap: the names of new secrets follow from the file.
 */
export async function setProvider(
  { settings, secrets, readText, env }: SetProviderDeps,
  { id, type, baseUrl, key, addKeys = [], models, prices = {} }: Asked,
  { present, removed }: { readonly present: DescribedProvider | undefined; readonly removed: readonly string[] },
  call: CallContext,
): Promise<ResultInput<'providers.set'>> {
  const path = ['providers', id];
  const edits: Edit[] = [{ set: [...path, 'type'], value: type }];
  const put = (name: string, value: unknown) => edits.push({ set: [...path, name], value });
  const store = async (name: string, value: string): Promise<string> => {
    await secrets.replace(name, value, call, { actionType: 'providers.set', classification: 'destructive', target: name });
    return name;
  };
  const found = present?.source === 'environment' && present.type === type ? present : undefined;
  const address = baseUrl ?? (found?.baseUrl === vendors[type].baseUrl ? undefined : found?.baseUrl);
  if (address !== undefined) put('baseUrl', address);
  if (models !== undefined) put('models', models);
  for (const [model, price] of Object.entries(prices))
    edits.push(price === null ? { unset: [...path, 'prices', model] } : { set: [...path, 'prices', model], value: price });

  const stored = key === undefined ? undefined : await store(secretNameOf({ id, type }, readText(), env), key);
  const [inherited] = found?.keys ?? [];
  const first = stored ?? inherited?.name;
  if (first !== undefined) put('apiKey', `\${${first}}`);
  else if (removed.includes('apiKey')) edits.push({ unset: [...path, 'apiKey'] });

  const added: string[] = [];
  for (const value of addKeys) added.push(await store(furtherSecretName(id, readText(), secrets.environment), value));
  // By value: an edit by hand may have moved them when this one is made.
  const dropped = new Set(writtenKeys(readText(), id).filter((_, index) => removed.includes(`apiKeys[${index}]`)));
  const keyEdits = (text: string): Edit[] => {
    if (added.length === 0 && dropped.size === 0) return [];
    const all = [...writtenKeys(text, id).filter((key) => !dropped.has(key)), ...added.map((name) => `\${${name}}`)];
    return [all.length === 0 ? { unset: [...path, 'apiKeys'] } : { set: [...path, 'apiKeys'], value: all }];
  };
  const change = {
    section: 'providers',
    key: id,
    origin: 'rpc',
    edits: (text: string) => [...edits, ...keyEdits(text)],
    actionType: 'providers.set',
    summary: 'set',
  } as const;
  const { changed, version, digest } = await settings.change(change, call);
  return {
    provider: id,
    ...(stored !== undefined && { key: stored }),
    ...(added.length > 0 && { addedKeys: added }),
    changed: [...changed],
    version,
    digest,
  };
}

/** The further keys of a provider as they are written, references unresolved. */
function writtenKeys(text: string, id: string): readonly string[] {
  return Written.safeParse(rawDocument(text)).data?.providers[id]?.apiKeys ?? [];
}

/** Returns the id of a key by its id or its name. */
export function keyIdOf(
  provider: string,
  keys: readonly { readonly id: string; readonly name?: string | undefined }[],
  asked: string,
  param: string,
): string {
  const key = keys.find(({ id }) => id === asked) ?? keys.find(({ name }) => name === asked);
  if (key !== undefined) return key.id;
  const known = keys.map(({ id, name }) => (name === undefined ? id : `${id} (${name})`)).join(', ');
  throw new AppError('not_found', `The provider "${provider}" has no key "${asked}"; it has ${known === '' ? 'none' : known}`, { param });
}
