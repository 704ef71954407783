import { AgentConfig, AgentId, LogLevel, once, section } from '@gatehouse/contract';
import * as z from 'zod';
import absent from './config-defaults.json' with { type: 'json' };
import { ApprovalsConfig } from './features/access/approvals/config.ts';
import { AutonomyConfig } from './features/delegation/autonomy/config.ts';
import { BudgetsConfig } from './features/access/budgets/config.ts';
import { CronConfig } from './features/unattended/cron/config.ts';
import { DurableConfig } from './features/unattended/durable/config.ts';
import { HeartbeatConfig } from './features/unattended/heartbeat/config.ts';
import { McpConfig } from './features/agents/mcp/config.ts';
import { BrowserConfig } from './features/environment/browser/config.ts';
import { DocumentsConfig } from './features/environment/documents/config.ts';
import { MediaConfig } from './features/environment/media/config.ts';
import { ImageGenConfig, TranscriptionConfig, TtsConfig, VideoConfig, VisionConfig } from './features/environment/multimodal/config.ts';
import { RetentionConfig } from './features/operations/retention/config.ts';
import { ObservabilityConfig } from './features/operations/observability/config.ts';
import { AgentToAgentConfig } from './features/delegation/subagents/config.ts';
import { SkillsConfig } from './features/knowledge/skills/config.ts';
import { ExecConfig } from './features/environment/shell/config.ts';
import { PersonsConfig } from './features/access/tokens/config.ts';
import { SecretsConfig } from './features/operations/secrets/config.ts';
import { LinksConfig, WebSearchConfig } from './features/environment/web/config.ts';
import { ChannelsConfig } from './features/channels/instances/config.ts';
import { WebhooksConfig } from './features/unattended/webhooks/config.ts';
import { WorkspacesConfig } from './features/environment/workspace/config.ts';
import { GatewayConfig } from './gateway/config.ts';
import { StorageConfig } from './kernel/db/config.ts';
import { EmbeddingConfig, ModelsConfig, ProvidersConfig } from './llm/config.ts';

const SchedulerConfig = once(() =>
  z.strictObject({
    cron: CronConfig().prefault({}).meta({ apply: 'live' }).describe('Scheduled jobs.'),
    heartbeat: HeartbeatConfig().prefault({}).meta({ apply: 'live' }).describe('Beats: agents that look after their checklists without being asked.'),
  }),
);

const SecurityConfig = once(() =>
  z.strictObject({ agentToAgent: AgentToAgentConfig().prefault({}).meta({ apply: 'live' }).describe('How agents start and message one another.') }),
);

const MediaSection = once(() =>
  MediaConfig().extend({
    transcription: TranscriptionConfig().prefault({}).describe('Speech to text.'),
    vision: VisionConfig().prefault({}).describe('Descriptions of images.'),
    video: VideoConfig().prefault({}).describe('Descriptions of videos.'),
  }),
);

/** All of config.yaml: one line per section; an unknown key stops the start. */
export const RootConfig = z.strictObject({
  gateway: GatewayConfig.prefault({}).describe('The listener: address, tokens, limits.'),
  providers: ProvidersConfig.default({}).meta({ apply: 'live' }).describe('Model providers by id.'),
  models: ModelsConfig.prefault({}).meta({ apply: 'live' }).describe('Settings for all models.'),
  agents: z.record(AgentId, AgentConfig).default({}).meta({ apply: 'live' }).describe('Agents by id; `default` exists even when it is not listed.'),
  persons: PersonsConfig.default({})
    .meta({ apply: 'live' })
    .describe('Limits of persons by name, over all their tokens (`gateway.tokens[].person`).'),
  approvals: section(ApprovalsConfig, absent.approvals).meta({ apply: 'live' }).describe('Which tool calls wait for a person.'),
  autonomy: section(AutonomyConfig, absent.autonomy)
    .meta({ apply: 'live' })
    .describe('What agents may start beyond their own turns, and the guards around it.'),
  budgets: BudgetsConfig.prefault({}).meta({ apply: 'live' }).describe('Hard caps over all agents together; each agent also has its own.'),
  browser: section(BrowserConfig, absent.browser).meta({ apply: 'live' }).describe('Browsers of agents: one Chromium each, in a jail.'),
  documents: section(DocumentsConfig, absent.documents).meta({ apply: 'live' }).describe('Text of documents: sizes, and how much is read.'),
  durable: section(DurableConfig, absent.durable)
    .meta({ apply: 'live' })
    .describe('Work that must be done although a process ends or a provider fails.'),
  exec: section(ExecConfig, absent.exec).meta({ apply: 'live' }).describe('Commands that agents run, in a jail: bounds of each.'),
  routing: z.strictObject({ defaultAgentId: AgentId.default('default').describe('The agent of calls that name none.') }).prefault({}),
  embedding: EmbeddingConfig.optional().describe('Embeddings; off when absent.'),
  mcp: section(McpConfig, absent.mcp).meta({ apply: 'live' }).describe('Servers of the Model Context Protocol whose tools the agents may use.'),
  media: section(MediaSection, absent.media)
    .meta({ apply: 'live' })
    .describe('Stored files: sizes, and how long they are kept; and what reads speech, images and video.'),
  tts: section(TtsConfig, absent.tts).meta({ apply: 'live' }).describe('Text to speech.'),
  imageGen: section(ImageGenConfig, absent.imageGen).meta({ apply: 'live' }).describe('Generation of images.'),
  scheduler: section(SchedulerConfig, absent.scheduler).describe('Scheduled work.'),
  security: section(SecurityConfig, absent.security).describe('What agents may do with each other.'),
  secrets: section(SecretsConfig, absent.secrets).describe(
    'The store of secrets, which `${NAME}` is looked up in when the environment has no such variable.',
  ),
  skills: section(SkillsConfig, absent.skills)
    .meta({ apply: 'live' })
    .describe('Skills of all agents: where the shared ones lie, and what is taken in.'),
  webSearch: section(WebSearchConfig, absent.webSearch).meta({ apply: 'live' }).describe('The search provider for agents.'),
  links: section(LinksConfig, absent.links).meta({ apply: 'live' }).describe('Addresses in a text, for `link.process`.'),
  webhooks: section(WebhooksConfig, absent.webhooks).meta({ apply: 'live' }).describe('Webhooks: who may send them, and what they cause.'),
  channels: section(ChannelsConfig, absent.channels).meta({ apply: 'live' }).describe('Chat platforms over which people write to agents, by name.'),
  storage: section(StorageConfig, absent.storage).describe('Where the data lives.'),
  workspaces: section(WorkspacesConfig, absent.workspaces)
    .meta({ apply: 'live' })
    .describe('The folders in which agents work: how much each may hold.'),
  retention: RetentionConfig.prefault({}).meta({ apply: 'live' }).describe('How long records are kept that grow with use.'),
  observability: ObservabilityConfig.prefault({}).describe('What the daemon reports to monitoring systems; `/metrics` needs no setting.'),
  logging: z
    .strictObject({
      level: LogLevel.default('info'),
      modules: z.record(z.string(), LogLevel).default({}).describe('Level per module, overrides `level`.'),
      format: z.enum(['auto', 'json', 'text']).default('auto').describe('`auto`: text on a terminal, one JSON object per line otherwise.'),
    })
    .prefault({})
    .meta({ apply: 'live' })
    .describe('The log on standard error.'),
});
export type RootConfig = z.output<typeof RootConfig>;
