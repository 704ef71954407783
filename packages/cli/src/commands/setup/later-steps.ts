import type { Client } from '@gatehouse/client';
import type { ShapedFiles } from '@gatehouse/client/agent-template';
import { clients } from '../../clients/clients.ts';
import { usageError } from '../../failure.ts';
import type { Io } from '../../io.ts';
import { nearest } from '../../nearest.ts';
import { findTemplate } from '../agent-template.ts';
import type { ConnectedModel } from './connect-model.ts';
import type { Prompts } from './prompts.ts';
import { readDollars, type SetupFlags } from './setup.ts';

export interface LaterDeps {
  readonly client: Client;
  readonly flags: SetupFlags;
  readonly io: Io;
  readonly prompts: Prompts;
  readonly defaultAgentId: string;
}

export interface ChosenTemplate extends ShapedFiles {
  readonly template: string;
}

const none = 'none';

/** Fails for a template or client that does not exist: before a model is connected, called and paid. */
export async function checkLaterFlags({ template, client }: Pick<SetupFlags, 'template' | 'client'>): Promise<void> {
  if (template !== undefined && template !== none) await findTemplate(template);
  if (client !== undefined && client !== none) findClient(client);
}

/** Applies a template to the default agent. */
export async function chooseTemplate({ client, flags, io, prompts, defaultAgentId: agentId }: LaterDeps): Promise<ChosenTemplate | undefined> {
  const id = flags.template ?? (io.stdin.isTTY === true ? await askTemplate(prompts) : none);
  if (id === none) return undefined;
  const { chosen, writeFiles } = await findTemplate(id);
  await client.call('agents.update', { agentId, config: { ...chosen.config } });
  return { template: id, ...(await writeFiles(client, agentId)) };
}

async function askTemplate(prompts: Prompts): Promise<string> {
  const { agentTemplates } = await import('@gatehouse/contract/agent-templates');
  return prompts.select({
    message: 'What is your agent for?',
    choices: [
      { value: none, label: 'Leave it as it is', hint: 'reads and writes files of its folder' },
      ...agentTemplates.map(({ id, title, summary }) => ({ value: id, label: title, hint: summary })),
    ],
  });
}

/** Returns the command that connects a client. */
export async function chooseClient({ flags, io, prompts }: LaterDeps): Promise<string | undefined> {
  const id =
    flags.client ??
    (io.stdin.isTTY === true
      ? await prompts.select({
          message: 'Connect a client?',
          choices: [{ value: none, label: 'Not now' }, ...clients.map((one) => ({ value: one.id, label: one.title }))],
        })
      : none);
  return id === none ? undefined : `gatehouse connect ${id}${findClient(id).files === undefined ? '' : ' --write'}`;
}

function findClient(id: string): (typeof clients)[number] {
  const found = clients.find((one) => one.id === id);
  if (found !== undefined) return found;
  const ids = clients.map((one) => one.id);
  const meant = nearest(id, ids);
  throw usageError(`Unknown client ${JSON.stringify(id)}: expected ${ids.join(', ')}.`, meant && `Did you mean \`--client ${meant}\`?`);
}

export interface ChosenBudget {
  readonly perDayUsd?: number;
  readonly perDayTokens?: number;
}

/** Sets a cap for all agents together, in dollars where the price of the model is known. */
export async function chooseBudget({ client, flags, io, prompts }: LaterDeps, model: ConnectedModel): Promise<ChosenBudget | undefined> {
  const cost = await costOf(client, model);
  if (flags.budget !== undefined && cost === null)
    throw usageError(
      `The price of ${model.provider}/${model.model} is not known, so a budget in dollars would refuse it.`,
      'Use --budget-tokens, or set the price under providers.<id>.models.',
    );
  const budget = flags.budget ?? flags.budgetTokens;
  if (budget === undefined && io.stdin.isTTY !== true) return undefined;
  const chosen: ChosenBudget =
    budget === undefined
      ? await askBudget(prompts, cost !== null && cost.input + cost.output > 0)
      : {
          ...(flags.budget !== undefined && { perDayUsd: flags.budget }),
          ...(flags.budgetTokens !== undefined && { perDayTokens: flags.budgetTokens }),
        };
  for (const [key, value] of Object.entries(chosen)) await client.call('config.set', { section: 'budgets', key, value });
  return Object.keys(chosen).length === 0 ? undefined : chosen;
}

/** Returns the price of the model; null when it is not known: a cap in dollars refuses such a model. */
async function costOf(client: Client, { provider, model }: ConnectedModel) {
  const { providers } = await client.call('providers.list', {});
  const models = providers.find((one) => one.provider === provider)?.models ?? [];
  return models.find(({ modelId }) => modelId === model)?.cost ?? null;
}

async function askBudget(prompts: Prompts, isPaid: boolean): Promise<ChosenBudget> {
  const unit = isPaid ? 'US dollars' : 'tokens';
  const text = await prompts.text({
    message: `Limit for 24 hours, in ${unit}`,
    placeholder: 'empty for none',
    check: (value) =>
      value.trim() === '' || isAmount(value.trim(), isPaid)
        ? undefined
        : `Expected ${isPaid ? 'dollars, such as 5' : 'a number of tokens, such as 2000000'}`,
  });
  if (text === '') return {};
  return isPaid ? { perDayUsd: readDollars(text) } : { perDayTokens: Number(text) };
}

function isAmount(text: string, isPaid: boolean): boolean {
  if (!isPaid) return /^[1-9]\d{0,14}$/.test(text);
  return /^\d+(\.\d+)?$/.test(text) && Number(text) > 0 && Number(text) <= 1_000_000;
}
