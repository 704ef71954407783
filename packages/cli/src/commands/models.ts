import type { Result } from '@gatehouse/contract';
import type { Client } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTable } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type Listed = Extract<Result<'models.list'>, { models: unknown }>['models'];

/** `gatehouse models list | test`. */
export function addModelsCommand(program: Command, io: Io, setExit: SetExit): void {
  const models = addGroup(program, 'models')
    .summary('list models and check a provider')
    .description('The catalog of models; needs a token with scope admin.');

  addList(models, io);
  addTest(models, io, setExit);
}

function addList(models: Command, io: Io): void {
  withConnection(models.command('list', { isDefault: true }))
    .description('Lists the models in the catalog.')
    .option('--provider <id>', 'only those of one provider')
    .action(async ({ provider, ...flags }: CommonFlags & { provider?: string }) => {
      const { client } = await connect(flags, io);
      const listed = await readModels(client, provider);
      print(io, flags, listed, modelTable);
    });
}

function addTest(models: Command, io: Io, setExit: SetExit): void {
  withConnection(models.command('test <provider>'))
    .description('Checks a provider in the catalog: its configuration, models and users. Sends nothing to it. Exits with 1 when it is unusable.')
    .action(async (provider: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const found = await client.call('models.test', { provider });
      if (found.status !== 'available') setExit(exitCode.failed);
      print(io, flags, found, testText);
    });
}

async function readModels(client: Client, provider: string | undefined): Promise<Listed> {
  const listed = await client.call('models.list', { provider });
  if ('models' in listed) return listed.models;
  return listed.providers.flatMap(({ name, models }) => models.map((model) => ({ provider: name, ...model })));
}

/** Formats the models with prices in US dollars per million tokens. */
function modelTable(models: Listed): string {
  if (models.length === 0) return 'No models.';
  return renderTable(
    ['Model', 'Context', 'Output', 'Reads', '$ in', '$ out', 'Price from', 'Confirmed'],
    models.map((one) => [
      `${one.provider}/${one.modelId}`,
      one.contextWindow,
      one.maxTokens,
      one.input.join(' '),
      one.cost?.input,
      one.cost?.output,
      priceText(one),
      one.validated ? 'yes' : 'no',
    ]),
  );
}

function priceText({ costSource, costAsOf }: Listed[number]): string | undefined {
  const source = costSource?.replaceAll('_', '-');
  return costAsOf === undefined ? source : `${source}, ${costAsOf}`;
}

function testText({ provider, status, source, message, hint, modelsAvailable, agentsUsing }: Result<'models.test'>): string {
  const words = { available: 'available', no_models: 'has no models', not_configured: 'is not configured' } as const;
  const from = source === undefined ? '' : ` (from ${source.replaceAll('_', ' ')})`;
  const users = agentsUsing.map(({ agentId, model }) => `${agentId} uses ${model}`);
  return [`${provider}: ${words[status]}${from}, ${modelsAvailable} models`, message, hint, ...users]
    .flatMap((line) => (line === undefined ? [] : [plainText(line)]))
    .join('\n');
}
