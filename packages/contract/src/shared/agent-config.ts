import * as z from 'zod';
import { TurnOrigin } from './turn.ts';

/** How a configuration names a model: `provider/modelId`, or a bare model id of any provider. */
export const ModelName = z.string().min(1).max(512).meta({ id: 'ModelName' });

const ToolPattern = z.string().regex(/^(group:)?[a-z][a-z0-9_]*$/, 'expected a tool name, or group:<name>');

export const toolProfiles = ['none', 'minimal', 'coding', 'messaging', 'supervisor', 'full'] as const;

/** Which tools an agent may use: (profile ∪ allow) − deny. */
export const ToolPolicy = z
  .strictObject({
    profile: z.enum(toolProfiles).default('minimal').describe('Named set of tools to start from.'),
    allow: z.array(ToolPattern).default([]).describe('Tools added to the profile; `group:<name>` adds a group.'),
    deny: z.array(ToolPattern).default([]).describe('Tools taken away; wins over everything.'),
  })
  .meta({ id: 'ToolPolicy' });
export type ToolPolicy = z.output<typeof ToolPolicy>;

/** Kinds of work that may be given a model of their own. */
export const operationTypes = ['interactive', 'cron', 'heartbeat', 'subagent', 'compaction', 'condensation', 'memoryReview'] as const;
export type OperationType = (typeof operationTypes)[number];

const OperationModel = z.strictObject({
  model: ModelName,
  timeoutMs: z.int().min(1000).optional().describe('Deadline of one model call, in milliseconds.'),
});

/** One agent, as written under `agents.<id>` in config.yaml and as taken by `agents.create`. */
export const AgentConfig = z
  .strictObject({
    name: z.string().min(1).max(128).default('Gate').describe('What the agent calls itself.'),
    model: ModelName.optional().describe('Primary model; the first one found otherwise.'),
    fallbackModels: z
      .array(ModelName)
      .max(8)
      .default([])
      .describe('Tried in order when the primary model fails in a way that another model may survive.'),
    instructions: z.string().max(65536).default('').describe("The operator's own words for the system prompt."),
    temperature: z.number().min(0).max(2).optional().describe('Sampling temperature; the provider decides otherwise.'),
    maxTokens: z.int().min(1).optional().describe('Output tokens per model call; the model decides otherwise.'),
    maxSteps: z.int().min(1).max(1000).default(150).describe('Model calls per turn.'),
    turnTimeoutMs: z.int().min(1000).max(86_400_000).default(600_000).describe('Wall clock of one turn, in milliseconds.'),
    modelTimeoutMs: z.int().min(1000).max(3_600_000).default(180_000).describe('Deadline of one model call, in milliseconds.'),
    maxConcurrentRuns: z.int().min(1).max(10_000).default(64).describe('Turns of different conversations that run at once; further ones wait.'),
    budgets: z
      .strictObject({ perTurnTokens: z.int().min(1).default(2_000_000).describe('Input plus output tokens of one turn.') })
      .prefault({})
      .describe('Hard caps; a turn that would pass one ends with `budget_exceeded`.'),
    circuitBreaker: z
      .strictObject({
        failures: z.int().min(1).default(5).describe('Consecutive failed turns that open it.'),
        resetMs: z.int().min(100).default(60_000).describe('How long it stays open before one turn may try again.'),
      })
      .prefault({}),
    tools: ToolPolicy.prefault({}).describe('Tools of this agent.'),
    originTools: z
      .partialRecord(TurnOrigin, z.array(ToolPattern))
      .default({})
      .describe('State-changing or outward tools that turns of an untrusted origin (`v1`, `webhook`) may use all the same.'),
    cacheRetention: z.enum(['none', 'short', 'long']).default('short').describe("How long the provider's prompt cache is asked to keep the prefix."),
    operationModels: z
      .partialRecord(z.enum(operationTypes), OperationModel)
      .default({})
      .describe(
        'Models per kind of work: `interactive` is the conversation itself and wins over `model`; the others are for work of later versions.',
      ),
  })
  .meta({ id: 'AgentConfig' });
export type AgentConfig = z.output<typeof AgentConfig>;
export type AgentConfigInput = z.input<typeof AgentConfig>;

/** A partial configuration: keys given replace, objects merge, `null` removes an optional key. */
export const AgentConfigPatch = z
  .record(z.string(), z.unknown())
  .meta({ id: 'AgentConfigPatch', description: 'Some keys of AgentConfig; objects are merged, lists replaced, null resets a key to its default.' });
