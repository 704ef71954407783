import type { Client } from '@gatehouse/client';
import type { ProviderType, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTable } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { readSecret } from './secret-value.ts';

type AddFlags = CommonFlags & { type?: string; baseUrl?: string; key: boolean };
type Tested = Result<'providers.test'>;

type Listed = Result<'providers.list'>['providers'][number];
type PriceFlags = CommonFlags & { in?: number; out?: number; cacheRead?: number; cacheWrite?: number; remove?: true };
type TestFlags = CommonFlags & { model?: string; key?: string; allKeys?: true };

/** `gatehouse providers list | test | retry | add | remove | add-key | remove-key | refresh | set-price`. */
export function addProvidersCommand(program: Command, io: Io, setExit: SetExit): void {
  const providers = addGroup(program, 'providers')
    .summary('list, test, add and remove model providers')
    .description('The model providers. Needs a token with scope admin; what changes them needs scope *, or the socket of the home folder.');

  addList(providers, io);
  addTest(providers, io, setExit);
  addRetry(providers, io);
  addAdd(providers, io, setExit);
  addRemove(providers, io);
  addKeys(providers, io, setExit);
  addRefresh(providers, io, setExit);
  addSetPrice(providers, io);
}

function addList(providers: Command, io: Io): void {
  withConnection(providers.command('list', { isDefault: true }))
    .description('Lists the providers with their state, and where their keys come from.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('providers.list', {}), providerTable);
    });
}

function addTest(providers: Command, io: Io, setExit: SetExit): void {
  withConnection(providers.command('test <provider>'))
    .description('Calls a model of a provider once and says what is wrong. Exits with 1 when it does not work.')
    .option('--model <id>', 'as the provider names it; its first one otherwise')
    .option('--key <key>', 'id or name of the key; the one that the next call would use otherwise')
    .option('--all-keys', 'tests each key of the provider')
    .action(async (provider: string, { model, key, allKeys, ...flags }: TestFlags) => {
      const { client } = await connect(flags, io);
      const test = (one?: string) => client.call('providers.test', { provider, model, key: one });
      if (allKeys !== true) {
        const tested = await test(key);
        if (!works(tested)) setExit(exitCode.failed);
        return print(io, flags, tested, testText);
      }
      const tests: Tested[] = [];
      for (const { id } of (await findProvider(client, provider)).keys) tests.push(await test(id));
      if (!tests.every(works)) setExit(exitCode.failed);
      print(io, flags, { tests }, () => tests.map(testText).join('\n'));
    });
}

function addRetry(providers: Command, io: Io): void {
  withConnection(providers.command('retry <provider>'))
    .description('Clears what failed calls have shown, so that the next call goes through and waiting work is retried at once.')
    .option('--key <key>', 'id or name of a key; all of them otherwise')
    .action(async (provider: string, { key, ...flags }: CommonFlags & { key?: string }) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('providers.retry', { provider, key }), ({ state }) => `The state of ${provider} is ${state}.`);
    });
}

function addAdd(providers: Command, io: Io, setExit: SetExit): void {
  withConnection(providers.command('add <provider>'))
    .description(
      'Adds a provider, or changes one, and tests it. The key is read from standard input, else a hidden prompt asks for it; it goes to the secret store. Exits with 1 when the test fails.',
    )
    .option('--type <type>', 'which API it has; otherwise the one of its name, or openai-compatible')
    .option('--base-url <url>', "address of the API; the vendor's own otherwise")
    .option('--no-key', 'ask for no key: it needs none, or keeps the one that it has')
    .action(async (id: string, { type, baseUrl, key: hasKey, ...flags }: AddFlags) => {
      const chosen = await readType(type, id);
      const key = hasKey ? await readSecret(`the key of ${id}`, `gatehouse providers add ${id}`, io) : undefined;
      const { client } = await connect(flags, io);
      const set = await client.call('providers.set', { id, type: chosen, baseUrl, key });
      const tested = await client.call('providers.test', { provider: id });
      if (!works(tested)) setExit(exitCode.failed);
      print(io, flags, { set, tested }, () => `${setText(set)}\n${testText(tested)}`);
    });
}

function addRemove(providers: Command, io: Io): void {
  withConnection(providers.command('remove <provider>'))
    .description('Removes a provider that nothing uses from config.yaml. Its stored key stays.')
    .option('-y, --yes', 'do not ask')
    .action(async (provider: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Remove the provider ${provider}?`, io);
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('providers.remove', { provider }), () => `Removed ${provider}.`);
    });
}

function addKeys(providers: Command, io: Io, setExit: SetExit): void {
  withConnection(providers.command('add-key <provider>'))
    .description(
      'Adds a further key to a provider and tests it. A key that is refused or has to wait is paused alone, and the next one is used. The key is read from standard input, else a hidden prompt asks for it.',
    )
    .action(async (id: string, flags: CommonFlags) => {
      const key = await readSecret(`a further key of ${id}`, `gatehouse providers add-key ${id}`, io);
      const { client } = await connect(flags, io);
      const { type } = await findProvider(client, id);
      const set = await client.call('providers.set', { id, type, addKeys: [key] });
      const name = set.addedKeys?.[0] ?? '';
      const tested = await client.call('providers.test', { provider: id, key: name });
      if (!works(tested)) setExit(exitCode.failed);
      print(io, flags, { set, tested }, () => `Stored the key as the secret ${name}.\n${testText(tested)}`);
    });
  withConnection(providers.command('remove-key <provider> <key>'))
    .description('Removes a key, by its id or name, from a provider. A stored key stays in the secret store.')
    .option('-y, --yes', 'do not ask')
    .action(async (id: string, key: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Remove the key ${key} of ${id}?`, io);
      const { client } = await connect(flags, io);
      const { type } = await findProvider(client, id);
      print(io, flags, await client.call('providers.set', { id, type, removeKeys: [key] }), () => `Removed the key ${key} of ${id}.`);
    });
}

function addRefresh(providers: Command, io: Io, setExit: SetExit): void {
  withConnection(providers.command('refresh <provider>'))
    .description('Asks a provider for its models and adds them to the catalog. Exits with 1 when it lists none.')
    .action(async (provider: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const refreshed = await client.call('providers.refresh', { provider });
      if (refreshed.models.length === 0) setExit(exitCode.failed);
      print(io, flags, refreshed, ({ models, cause }) =>
        models.length > 0 ? models.map(plainText).join('\n') : plainText(`No models. ${cause ?? ''}`),
      );
    });
}

function addSetPrice(providers: Command, io: Io): void {
  withConnection(providers.command('set-price <provider> <model>'))
    .description('States what a model costs, in US dollars per million tokens; it wins over the built-in table.')
    .option('--in <dollars>', 'input', readNumber)
    .option('--out <dollars>', 'output', readNumber)
    .option('--cache-read <dollars>', 'input that is read from the cache; as other input otherwise', readNumber)
    .option('--cache-write <dollars>', 'input that is written to the cache; as other input otherwise', readNumber)
    .option('--remove', 'removes the stated price')
    .action(async (id: string, model: string, { in: input, out: output, cacheRead, cacheWrite, remove, ...flags }: PriceFlags) => {
      const price = input === undefined || output === undefined ? undefined : { input, output, cacheRead, cacheWrite };
      if ((price === undefined) !== (remove === true)) throw usageError('Set --in and --out, or --remove.');
      const { client } = await connect(flags, io);
      const { type } = await findProvider(client, id);
      const set = await client.call('providers.set', { id, type, prices: { [model]: price ?? null } });
      print(io, flags, set, () =>
        set.changed.length === 0 ? 'Nothing changed.' : `${price === undefined ? 'Removed' : 'Set'} the price of ${id}/${model}.`,
      );
    });
}

function readNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value < Number.POSITIVE_INFINITY) return value;
  throw usageError(`Not a number of dollars: ${text}`);
}

async function findProvider(client: Client, id: string): Promise<Listed> {
  const { providers } = await client.call('providers.list', {});
  const found = providers.find(({ provider }) => provider === id);
  if (found !== undefined) return found;
  throw usageError(`There is no provider ${id}.`, `Providers: ${providers.map(({ provider }) => provider).join(', ')}`);
}

async function readType(type: string | undefined, id: string): Promise<ProviderType> {
  // Loading the contract takes 0.2 s, so other commands do without it.
  const { providerTypes } = await import('@gatehouse/contract');
  const found = providerTypes.find((one) => one === (type ?? id));
  if (found !== undefined) return found;
  if (type !== undefined) throw usageError(`Unknown type: ${type}`, `Types: ${providerTypes.join(', ')}`);
  return 'openai-compatible';
}

const works = ({ verdict }: Tested): boolean => verdict === 'ok' || verdict === 'slow';

function providerTable({ providers }: Result<'providers.list'>): string {
  if (providers.length === 0) return 'No providers. `gatehouse setup` connects one, or: gatehouse providers add openai';
  return renderTable(
    ['Provider', 'Type', 'State', 'Keys', 'Models', 'Address'],
    providers.map(({ provider, type, state, keys, models, baseUrl }) => [
      provider,
      type,
      state,
      keys.map(keyText).join(', ') || undefined,
      models.length,
      baseUrl,
    ]),
  );
}

/** Names a key by what remove-key and retry accept. */
function keyText({ id, from, name, state }: Listed['keys'][number]): string {
  return `${name ?? id} (${state === 'ok' ? from : `${from}, ${state}`})`;
}

function setText({ provider, key, changed }: Result<'providers.set'>): string {
  const done = changed.length === 0 ? `The configuration of ${provider} is unchanged.` : `Stored ${provider} in config.yaml.`;
  return key === undefined ? done : `${done} Its key is the secret ${key}.`;
}

function testText({ provider, verdict, message, nextStep, cause, key, model }: Tested): string {
  const which = key === undefined || key === 'apiKey' ? '' : ` with ${key}`;
  return [`${provider}/${model}${which}: ${verdict.replaceAll('_', ' ')}. ${message}.`, cause, nextStep === undefined ? undefined : `${nextStep}.`]
    .flatMap((line) => (line === undefined ? [] : [plainText(line)]))
    .join('\n');
}
