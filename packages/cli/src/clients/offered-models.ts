import type { Client } from '@gatehouse/client';
import { CliError, usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';
import type { OfferedModel } from './client.ts';

/** Limits the list so that it doesn't bury the rest of a configuration. */
const maxModels = 40;

export interface Offer {
  readonly model: string;
  readonly models: readonly OfferedModel[];
  /** Number of models that the list omits. */
  readonly leftOut: number;
}

/** Loads the gateway's models and selects an agent, a model, or the default agent's model. */
export async function readOffer(client: Client, { agent, model }: { agent?: string | undefined; model?: string | undefined }): Promise<Offer> {
  const [{ agents }, catalog] = await Promise.all([client.call('agents.list'), readCatalog(client)]);
  if (agent !== undefined) {
    if (!agents.includes(agent)) throw unknown('agent', agent, agents);
    const { config } = await client.call('agents.get', { agentId: agent });
    return { model: `agent/${agent}`, models: [{ ...findModel(catalog, config.model), id: `agent/${agent}` }], leftOut: 0 };
  }
  const all: OfferedModel[] = [...catalog, ...agents.map((id) => ({ id: `agent/${id}` }))];
  const wanted = model ?? (await defaultModel(client, agents, catalog));
  const chosen = findModel(all, wanted);
  if (chosen === undefined)
    throw unknown(
      'model',
      wanted,
      all.map(({ id }) => id),
    );
  const models = [chosen, ...all.filter((one) => one !== chosen)];
  return { model: chosen.id, models: models.slice(0, maxModels), leftOut: Math.max(0, models.length - maxModels) };
}

async function readCatalog(client: Client): Promise<OfferedModel[]> {
  const listed = await client.call('models.list');
  if ('models' in listed) return [];
  return listed.providers.flatMap(({ name, models }) =>
    models.map(({ modelId, contextWindow, maxTokens, input }) => ({ id: `${name}/${modelId}`, contextWindow, maxTokens, input })),
  );
}

async function defaultModel(client: Client, agents: readonly string[], catalog: readonly OfferedModel[]): Promise<string> {
  const found = await Promise.all(agents.map((agentId) => client.call('agents.get', { agentId })));
  const agent = found.find(({ isDefault }) => isDefault);
  if (agent === undefined) throw new CliError('The gateway has no default agent.', { hint: 'Select one with --model or --agent.' });
  return findModel(catalog, agent.config.model)?.id ?? `agent/${agent.agentId}`;
}

/** Finds a model by `provider/model` or by its bare id. */
function findModel(models: readonly OfferedModel[], name: string | undefined): OfferedModel | undefined {
  return models.find(({ id }) => id === name) ?? models.find(({ id }) => id.slice(id.indexOf('/') + 1) === name);
}

function unknown(kind: 'agent' | 'model', name: string, known: readonly string[]): CliError {
  const meant = nearest(name, known);
  const shown = known.slice(0, 10).join(', ');
  return usageError(
    `The gateway has no ${kind} ${JSON.stringify(name)}: it has ${shown}${known.length > 10 ? ` and ${known.length - 10} more` : ''}.`,
    meant && `Did you mean \`${meant}\`?`,
  );
}
