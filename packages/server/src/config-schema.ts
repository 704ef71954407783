import { AgentConfig, AgentId, LogLevel } from '@gatehouse/contract';
import * as z from 'zod';
import { BudgetsConfig } from './features/budgets/config.ts';
import { MediaConfig } from './features/media/config.ts';
import { ObservabilityConfig } from './features/observability/config.ts';
import { GatewayConfig } from './gateway/config.ts';
import { EmbeddingConfig, ModelsConfig, ProvidersConfig } from './llm/config.ts';

/** The whole of config.yaml: one line per section; an unknown key stops the start. */
export const RootConfig = z.strictObject({
  gateway: GatewayConfig.prefault({}).describe('The listener: address, tokens, limits.'),
  providers: ProvidersConfig.default({}).describe('Model providers by id.'),
  models: ModelsConfig.prefault({}).describe('What holds for all models.'),
  agents: z.record(AgentId, AgentConfig).default({}).describe('Agents by id; `default` exists even when it is not listed.'),
  budgets: BudgetsConfig.prefault({}).describe('Hard caps over all agents together; each agent has its own beside them.'),
  routing: z.strictObject({ defaultAgentId: AgentId.default('default').describe('The agent of calls that name none.') }).prefault({}),
  embedding: EmbeddingConfig.optional().describe('Embeddings; off when absent.'),
  media: MediaConfig.prefault({}).describe('Stored files: sizes, and how long they are kept.'),
  storage: z.strictObject({ driver: z.enum(['sqlite']).default('sqlite').describe('Where data lives.') }).prefault({}),
  observability: ObservabilityConfig.prefault({}).describe('What the daemon tells monitoring systems; `/metrics` needs no setting.'),
  logging: z
    .strictObject({
      level: LogLevel.default('info'),
      modules: z.record(z.string(), LogLevel).default({}).describe('Level per module, wins over `level`.'),
    })
    .prefault({})
    .describe('The log, one JSON object per line on standard error.'),
});
export type RootConfig = z.output<typeof RootConfig>;
