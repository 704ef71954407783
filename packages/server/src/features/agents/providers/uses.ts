import { parseJson } from '../../../kernel/json.ts';
import type { EmbeddingConfig, ModelsConfig } from '../../../llm/config.ts';
import type { Models } from '../../../llm/models.ts';
import type { Agent } from '../agents/api.ts';
import type { StoredUse } from './api.ts';

type Named = readonly (readonly [where: string, model: string | undefined])[];

export interface UsesDeps {
  readonly models: Pick<Models, 'resolve'>;
  readonly agents: readonly Agent[];
  readonly config: {
    readonly models: Pick<ModelsConfig, 'default'>;
    readonly embedding?: EmbeddingConfig | undefined;
    readonly webhooks: { readonly mappings: readonly { readonly id: string; readonly model?: string | undefined }[] };
    readonly scheduler: { readonly heartbeat: { readonly model?: string | undefined } };
    readonly gateway: { readonly compat: { readonly models: Readonly<Record<string, string>> } };
  };
  readonly stored: readonly StoredUse[];
}

/** Returns what names a provider or a model of it: keys of the configuration, jobs and graphs. */
export function usesOf(provider: string, { models, agents, config, stored }: UsesDeps): string[] {
  const isOf = (name: string | undefined) => name !== undefined && (name.startsWith(`${provider}/`) || models.resolve(name)?.provider === provider);
  const named: Named = [
    ['models.default', config.models.default],
    ...agents.flatMap(modelKeysOf),
    ['scheduler.heartbeat.model', config.scheduler.heartbeat.model],
    ...config.webhooks.mappings.map(({ id, model }) => [`webhooks.mappings[${id}].model`, model] as const),
    ...Object.entries(config.gateway.compat.models).map(([name, model]) => [`gateway.compat.models.${name}`, model] as const),
    ...stored.flatMap(({ where, json }) => modelsIn(parseJson(json)).map((model) => [where, model] as const)),
  ];
  const uses = named.filter(([, name]) => isOf(name)).map(([where]) => where);
  return [...new Set([...(config.embedding?.provider === provider ? ['embedding.provider'] : []), ...uses])];
}

function modelKeysOf({ id, config }: Agent): Named {
  const own = `agents.${id}`;
  return [
    [`${own}.model`, config.model],
    ...config.fallbackModels.map((name, index) => [`${own}.fallbackModels[${index}]`, name] as const),
    ...Object.entries(config.operationModels).map(([operation, { model }]) => [`${own}.operationModels.${operation}.model`, model] as const),
    [`${own}.heartbeat.model`, config.heartbeat.model],
  ];
}

/** Returns the texts under keys `model`, at any depth. */
function modelsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]: [string, unknown]) => (key === 'model' && typeof part === 'string' ? [part] : modelsIn(part)));
}
