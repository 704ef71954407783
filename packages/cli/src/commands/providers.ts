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

/** `gatehouse providers list | test | add | remove`. */
export function addProvidersCommand(program: Command, io: Io, setExit: SetExit): void {
  const providers = addGroup(program, 'providers')
    .summary('list, test, add and remove model providers')
    .description('The model providers. Needs a token with scope admin; add and remove need scope *, or the socket of the home folder.');

  addList(providers, io);
  addTest(providers, io, setExit);
  addAdd(providers, io, setExit);
  addRemove(providers, io);
}

function addList(providers: Command, io: Io): void {
  withConnection(providers.command('list', { isDefault: true }))
    .description('Lists the providers with their state, and where their key comes from.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('providers.list', {}), providerTable);
    });
}

function addTest(providers: Command, io: Io, setExit: SetExit): void {
  withConnection(providers.command('test <provider>'))
    .description('Calls a model of a provider once and says what is wrong. Exits with 1 when it does not work.')
    .option('--model <id>', 'as the provider names it; its first one otherwise')
    .action(async (provider: string, { model, ...flags }: CommonFlags & { model?: string }) => {
      const { client } = await connect(flags, io);
      const tested = await client.call('providers.test', { provider, model });
      if (!works(tested)) setExit(exitCode.failed);
      print(io, flags, tested, testText);
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
    ['Provider', 'Type', 'State', 'Key', 'Models', 'Address'],
    providers.map(({ provider, type, state, keys, models, baseUrl }) => [
      provider,
      type,
      state,
      keys.map(({ from, name }) => (name === undefined ? from : `${name} (${from})`)).join(' ') || undefined,
      models.length,
      baseUrl,
    ]),
  );
}

function setText({ provider, key, changed }: Result<'providers.set'>): string {
  const done = changed.length === 0 ? `The configuration of ${provider} is unchanged.` : `Stored ${provider} in config.yaml.`;
  return key === undefined ? done : `${done} Its key is the secret ${key}.`;
}

function testText({ provider, verdict, message, nextStep, cause, model }: Tested): string {
  return [`${provider}/${model}: ${verdict.replaceAll('_', ' ')}. ${message}.`, cause, nextStep === undefined ? undefined : `${nextStep}.`]
    .flatMap((line) => (line === undefined ? [] : [plainText(line)]))
    .join('\n');
}
