import * as z from 'zod';
import type { Canaries, Scanner } from './canaries.ts';
import { sayTo, type Target } from './canary-transports.ts';

interface ConfigurationUse {
  readonly canaries: Canaries;
  /** Address that repeats what it is sent in an error. */
  readonly echo: string;
  readonly scan: Scanner['scan'];
  readonly unprovoked: string[];
}

const History = z.looseObject({ entries: z.array(z.looseObject({ sha: z.string() })) });

/**
 * Takes secrets that only `config.yaml` holds through every method that changes or shows the configuration, and keys through those of
 * providers: given, refused, in differences and versions, rolled back, and repeated by a provider.
 */
export async function useConfiguration(target: Target, { canaries, echo, scan, unprovoked }: ConfigurationUse): Promise<void> {
  const say = sayTo(target, scan);
  const key = (what: string): string => canaries.make(what, 'sk-');
  const change = async (method: string, params: object): Promise<string> => {
    await say(method, { ...params, confirm: true, dryRun: true });
    return say(method, { ...params, confirm: true });
  };
  const expectIn = (answer: string, part: string): void => {
    if (!answer.includes(part)) unprovoked.push(`expected ${part} in ${answer.slice(0, 200)}`);
  };

  const provider = { type: 'openai-compatible', baseUrl: `${echo}/v1`, models: [{ id: 'm' }] };
  const keys = [key('a further key of config.yaml'), key('one more key of config.yaml')];
  const value = { ...provider, apiKey: key('a key given to config.patch'), apiKeys: keys };
  expectIn(await change('config.patch', { path: 'providers.patched', value }), '"patched":true');
  expectIn(await change('config.set', { path: 'providers.patched.apiKeys', value: [key('a key given to config.set'), ...keys] }), '"ok":true');
  const webSearch = { provider: 'brave', baseUrl: `${echo}/search`, apiKey: key('a key given to config.apply') };
  expectIn(await change('config.apply', { section: 'webSearch', value: webSearch }), '"applied":true');
  const address = `http://user:${canaries.make('a password in the address of a provider')}@127.0.0.1:1/v1`;
  expectIn(await change('config.patch', { path: 'providers.addressed', value: { ...provider, baseUrl: address } }), '"patched":true');

  // Refused, with the place and without the value.
  expectIn(await change('config.patch', { path: 'providers.patched', value: { apiKye: key('a key under a mistyped name') } }), 'apiKye');
  expectIn(await change('config.set', { path: 'providers.patched.apiKeys', value: key('keys that are not a list') }), 'apiKeys');
  await change('config.apply', { text: `providers: { a: { apiKey: ${key('a key in a text that is not valid')}` });
  await change('config.set', { path: 'providers.patched.type', value: key('a key in the wrong place') });

  expectIn(await say('providers.set', { ...provider, id: 'kept', key: key('a key given to providers.set') }), '"key":"KEPT_API_KEY"');
  await say('providers.set', { ...provider, id: 'kept', addKeys: [key('a further key given to providers.set')] });
  const candidate = { type: provider.type, baseUrl: provider.baseUrl, key: key('a key of a candidate') };
  for (const tested of [{ candidate }, { provider: 'patched' }, { provider: 'patched', key: 'apiKeys[0]' }, { provider: 'kept' }])
    expectIn(await say('providers.test', tested), 'Not allowed');
  for (const id of ['patched', 'addressed', 'kept'])
    for (const method of ['providers.refresh', 'providers.retry']) await say(method, { provider: id });
  expectIn(await say('providers.list'), 'apiKeys[2]');

  for (const section of ['providers', 'webSearch', undefined]) {
    await say('config.read', { section });
    await say('config.get', { section });
  }
  await say('config.get', { text: true });
  const { entries } = History.parse(JSON.parse(await say('config.history', { limit: 50 })));
  for (const { sha } of entries) await say('config.diff', { sha });
  await say('config.diff');
  const [newest, earlier] = entries;
  for (const version of [earlier, newest]) expectIn(await change('config.rollback', { sha: version?.sha }), '"version"');
  await say('config.gc', { olderThan: '2020-01-01T00:00:00Z' });
}
