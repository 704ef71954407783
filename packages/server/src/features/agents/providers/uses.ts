import type { EmbeddingConfig, ModelsConfig } from '../../../llm/config.ts';
import type { Models } from '../../../llm/models.ts';
import type { Agent } from '../agents/api.ts';

export interface UsesDeps {
  readonly models: Pick<Models, 'resolve'>;
  readonly agents: readonly Agent[];
  readonly config: { readonly models: Pick<ModelsConfig, 'default'>; readonly embedding?: EmbeddingConfig | undefined };
}

/** Returns the keys of the configuration that name a provider, or a model of it. */
export function usesOf(provider: string, { models, agents, config }: UsesDeps): string[] {
  const isOf = (name: string | undefined) => name !== undefined && (name.startsWith(`${provider}/`) || models.resolve(name)?.provider === provider);
  const named: readonly (readonly [string, string | undefined])[] = [['models.default', config.models.default], ...agents.flatMap(modelKeysOf)];
  return [...(config.embedding?.provider === provider ? ['embedding.provider'] : []), ...named.filter(([, name]) => isOf(name)).map(([key]) => key)];
}

function modelKeysOf({ id, config }: Agent): readonly (readonly [string, string | undefined])[] {
  const own = `agents.${id}`;
  return [
    [`${own}.model`, config.model],
    ...config.fallbackModels.map((name, index) => [`${own}.fallbackModels[${index}]`, name] as const),
    ...Object.entries(config.operationModels).map(([operation, { model }]) => [`${own}.operationModels.${operation}.model`, model] as const),
    [`${own}.heartbeat.model`, config.heartbeat.model],
  ];
}
