import * as z from 'zod';
import { autonomyProfiles } from './capability.ts';
import absent from '../agent-defaults.json' with { type: 'json' };
import { once } from '../once.ts';
import { section } from '../section.ts';
import { ChannelEndpoint } from './session.ts';
import { TurnOrigin } from './turn.ts';

/** How a configuration names a model: `provider/modelId`, or a bare model id of any provider. */
export const ModelName = z.string().min(1).max(512).meta({ id: 'ModelName' });

/** A tool by name, several by a prefix of their names (`mcp__files--*`), or a group. */
export const ToolPattern = z
  .string()
  .regex(/^(?:group:[a-z][a-z0-9_]*|[A-Za-z][A-Za-z0-9_-]{0,63}\*?)$/, 'expected a tool name, the beginning of names followed by *, or group:<name>');

export const toolProfiles = ['none', 'minimal', 'coding', 'messaging', 'supervisor', 'full'] as const;

/** Which tools an agent may use: (profile ∪ allow) − deny. */
export const ToolPolicy = z
  .strictObject({
    profile: z.enum(toolProfiles).default('minimal').describe('Named set of tools to start from.'),
    allow: z.array(ToolPattern).default([]).describe('Tools added to the profile; `group:<name>` adds a group.'),
    deny: z.array(ToolPattern).default([]).describe('Tools to remove; overrides everything.'),
    discovery: z
      .strictObject({
        mode: z
          .enum(['auto', 'always', 'never'])
          .default('auto')
          .describe('Whether tools of MCP servers are announced by group only and found by `discover_tools`; `auto`: when there are many.'),
        above: z.int().min(1).max(1000).default(40).describe('Number of allowed tools above which `auto` does so.'),
      })
      .prefault({})
      .describe('How the model discovers the tools of MCP servers.'),
  })
  .meta({ id: 'ToolPolicy' });
export type ToolPolicy = z.output<typeof ToolPolicy>;

/** Kinds of work that may have a separate model. */
export const operationTypes = ['interactive', 'cron', 'heartbeat', 'subagent', 'compaction', 'condensation', 'memoryReview'] as const;
export type OperationType = (typeof operationTypes)[number];

const OperationModel = z.strictObject({
  model: ModelName,
  timeoutMs: z.int().min(1000).optional().describe('Deadline of one model call, in milliseconds.'),
});

/** Trust levels that may be recalled into a turn. */
const RecallTrust = () => z.array(z.enum(['system', 'learned', 'external'])).max(3);

/** Memory of an agent; the entries themselves are managed by `memory.*`. */
export const AgentMemory = once(() =>
  z
    .strictObject({
      recall: z
        .strictObject({
          enabled: z.boolean().default(true).describe('Adds memories about a message before it, fenced, for the model alone.'),
          maxResults: z.int().min(1).max(50).default(5).describe('Memories per turn.'),
          maxTokens: z.int().min(128).max(32_768).default(1000).describe('Token limit for all of them, the fence included.'),
          minScore: z
            .number()
            .min(0)
            .max(1)
            .default(0.3)
            .describe('Relevance (0 to 1) below which a memory is omitted. Unrelated text scores near 0.'),
          trust: RecallTrust()
            .default(['system', 'learned'])
            .describe(
              'Levels that are recalled. With `external` the agent reads text of outsiders repeatedly, marked as untrusted; what it then learns is `external` too.',
            ),
          v1: z.boolean().default(false).describe('Recalls for completions of `/v1` too; their callers send the whole context themselves.'),
        })
        .prefault({})
        .describe('Recall of memories into turns.'),
      review: z
        .strictObject({
          minMessages: z.int().min(1).max(10_000).default(5).describe('New messages that make a conversation worth a review.'),
          maxSessionsPerRun: z.int().min(1).max(1000).default(10).describe('Conversations of one run; one model call each.'),
          maxTokens: z.int().min(512).max(131_072).default(4096).describe('Tokens of a conversation that the model is shown.'),
          dedupThreshold: z.number().min(0.5).max(1).default(0.85).describe('Likeness from which a finding counts as already known.'),
          autoTags: z.array(z.string().min(1).max(64)).max(10).default([]).describe('Tags of reviewed memories, in addition to `auto-review`.'),
        })
        .prefault({})
        .describe('Review of conversations (`memory.review`): what is worth remembering becomes memories.'),
      limits: z
        .strictObject({
          maxEntries: z
            .int()
            .min(1)
            .optional()
            .describe('Maximum number of memories; the weakest beyond it are evicted by `memory.lifecycle`. No limit when absent.'),
          maxAgeDays: z
            .int()
            .min(1)
            .max(36_500)
            .optional()
            .describe('Days after which a memory is evicted even if it is used. No limit when absent.'),
        })
        .prefault({})
        .describe('Limits that `memory.lifecycle` enforces; pinned entries and those of trust `system` are never evicted.'),
    })
    .meta({ id: 'AgentMemory' }),
);

/** Calls of tools that support running in the background. */
export const AgentBackground = once(() =>
  z
    .strictObject({
      afterMs: z.int().min(0).max(3_600_000).default(30_000).describe('Milliseconds after which a call continues in the background; 0: never.'),
      maxRunning: z.int().min(1).max(64).default(4).describe('Concurrent tasks of the agent; at the limit, further calls stay in their turn.'),
      maxMs: z
        .int()
        .min(1000)
        .max(86_400_000)
        .default(1_800_000)
        .describe('Deadline of a task, counted from the start of its call, in milliseconds.'),
    })
    .meta({ id: 'AgentBackground' }),
);

/** Permissions and limits of an agent's commands; missing keys default to the section `exec`. */
export const AgentExec = once(() =>
  z
    .strictObject({
      network: z
        .boolean()
        .default(false)
        .describe(
          'Lets a command that requests it reach the network, including this machine and its neighbours; each such call requires an approval.',
        ),
      env: z
        .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'expected the name of an environment variable'))
        .max(64)
        .default([])
        .describe(
          "Names of variables of the daemon's environment that commands see; all others are cleared. Names of secrets (`SERVICE_TOKEN`) are looked up in the secret store, too.",
        ),
      memoryMb: z.int().min(16).optional().describe('Memory of a command, in MiB.'),
      processes: z.int().min(1).optional().describe('Processes and threads of a command at once.'),
      cpuSeconds: z.int().min(1).optional().describe('Processor time of each process, in seconds.'),
      fileMb: z.int().min(1).optional().describe('Size of each file that a command writes, in MiB.'),
    })
    .meta({ id: 'AgentExec' }),
);

const tokenCap = z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional();
const dollarCap = z.number().min(0.000_001).max(1_000_000).optional();

/** Caps over time: rolling windows of 60 minutes and 24 hours. */
export const windowBudgets = {
  perHourTokens: tokenCap.describe('Input plus output tokens of the last 60 minutes.'),
  perDayTokens: tokenCap.describe('Input plus output tokens of the last 24 hours.'),
  perHourUsd: dollarCap.describe('US dollars of the last 60 minutes. Under a cap in dollars a model whose price is not known is not called.'),
  perDayUsd: dollarCap.describe('US dollars of the last 24 hours.'),
};

/** Caps of one agent: background work, such as summaries and embeddings, counts as well. */
export const AgentBudgets = z
  .strictObject({
    perTurnTokens: z.int().min(1).default(2_000_000).describe('Input plus output tokens of one turn.'),
    perTurnUsd: dollarCap.describe('US dollars of one turn.'),
    ...windowBudgets,
  })
  .meta({ id: 'AgentBudgets' });
export type AgentBudgets = z.output<typeof AgentBudgets>;

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const resetRule = once(() => ({
  mode: z
    .enum(['none', 'daily', 'idle', 'both'])
    .describe('`daily`: at an hour of the day; `idle`: after a time without a message; `both`: whichever comes first.'),
  hour: z.int().min(0).max(23).describe('Hour of the day at which a new one starts, for `daily`.'),
  timeZone: z
    .string()
    .max(64)
    .refine(isTimeZone, 'expected the name of a time zone, such as Europe/Berlin')
    .describe("IANA name of the zone of `hour`; the machine's own when absent."),
  idleMinutes: z.int().min(1).max(525_600).describe('Minutes without a message, for `idle`.'),
}));
const ResetOverride = once(() =>
  z
    .strictObject({
      mode: resetRule().mode.optional(),
      hour: resetRule().hour.optional(),
      timeZone: resetRule().timeZone.optional(),
      idleMinutes: resetRule().idleMinutes.optional(),
    })
    .meta({ id: 'ResetOverride' }),
);

/** When a conversation is reset automatically, as by `session.reset`; checked when the next message arrives. */
export const SessionReset = once(() =>
  z
    .strictObject({
      mode: resetRule().mode.default('none'),
      hour: resetRule().hour.default(4),
      timeZone: resetRule().timeZone.optional(),
      idleMinutes: resetRule().idleMinutes.default(240),
      dm: ResetOverride().optional().describe('Overrides for conversations of one person: a session key without a peer.'),
      group: ResetOverride().optional().describe('Overrides for groups: a session key with a peer.'),
      thread: ResetOverride().optional().describe('Overrides for threads: a session key with a thread.'),
    })
    .meta({ id: 'SessionReset' }),
);
export type SessionReset = z.output<ReturnType<typeof SessionReset>>;

const dayTime = () => z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'expected a time of the day as HH:MM');

/** Settings of heartbeats for all agents and for each; the defaults are in `scheduler.heartbeat`. */
export const heartbeatFields = once(() => ({
  intervalMs: z.int().min(60_000).max(604_800_000).describe('Milliseconds between two heartbeats.'),
  prompt: z.string().min(1).max(4000).describe('Instructions for a heartbeat, instead of the built-in text.'),
  model: ModelName.describe('Model of the heartbeats; `operationModels.heartbeat` of the agent, then its own, otherwise.'),
  lightContext: z.boolean().describe('Sends only the checklist and new events, without earlier heartbeats and the other files of the workspace.'),
  ackMaxChars: z.int().min(0).max(10_000).describe('Characters allowed in addition to HEARTBEAT_OK in an answer that reports nothing.'),
  activeHours: z
    .strictObject({
      start: dayTime().describe('First minute of the day in which heartbeats run, as HH:MM.'),
      end: dayTime().describe('First minute in which they do not; before `start` it means the next day.'),
      timeZone: z
        .string()
        .max(64)
        .refine(isTimeZone, 'expected the name of a time zone, such as Europe/Berlin')
        .optional()
        .describe('IANA name of their zone; UTC when absent.'),
    })
    .refine(({ start, end }) => start !== end, { path: ['end'], error: 'expected another time than `start`' })
    .describe('When scheduled heartbeats may run; around the clock when absent. Requested ones run at any hour.'),
  toolPolicy: ToolPolicy.describe('Tools of a heartbeat: only those that this and the policy of the agent both allow.'),
  timeoutMs: z.int().min(1000).max(3_600_000).describe('Wall clock of one heartbeat, in milliseconds.'),
  showOk: z.boolean().describe('Also reports heartbeats that found nothing to the inbox.'),
  showAlerts: z.boolean().describe('Reports results of heartbeats, and their failures, to the inbox.'),
  alertThreshold: z.int().min(1).max(100).describe('Consecutive temporary failures from which an alert is raised.'),
  alertCooldownMs: z.int().min(0).max(604_800_000).describe('Minimum milliseconds between two alerts of an agent.'),
  target: ChannelEndpoint.describe(
    'Chat of a configured channel that gets the results, instead of the inbox. Alerts about failures go to the inbox.',
  ),
}));

/** Heartbeats of an agent; missing keys default to `scheduler.heartbeat`. */
export const AgentHeartbeat = once(() =>
  z
    .strictObject({
      enabled: z.boolean().default(false).describe('Off: no model is called for a heartbeat, whatever requests one.'),
      ...z.strictObject(heartbeatFields()).partial().shape,
    })
    .meta({ id: 'AgentHeartbeat' }),
);
export type AgentHeartbeat = z.output<ReturnType<typeof AgentHeartbeat>>;

/** Hours of the day in which nobody is disturbed. */
export const QuietHours = once(() =>
  z
    .strictObject({
      start: dayTime().describe('First minute of the day in which messages are kept back, as HH:MM.'),
      end: dayTime().describe('First minute in which they are sent again; before `start` it means the next day.'),
      timeZone: z
        .string()
        .max(64)
        .refine(isTimeZone, 'expected the name of a time zone, such as Europe/Berlin')
        .optional()
        .describe('IANA name of their zone; UTC when absent.'),
      criticalBypass: z.boolean().default(true).describe('Sends notifications with priority `critical` nevertheless.'),
    })
    .refine(({ start, end }) => start !== end, { path: ['end'], error: 'expected another time than `start`' })
    .meta({ id: 'QuietHours' }),
);
export type QuietHours = z.output<ReturnType<typeof QuietHours>>;

/** Notifications on behalf of an agent (`notification.send`). */
export const AgentNotification = once(() =>
  z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether programs may notify the users of this agent.'),
      maxPerHour: z.int().min(1).max(10_000).default(30).describe('Notifications of the last 60 minutes.'),
      dedupeWindowMs: z
        .int()
        .min(0)
        .max(86_400_000)
        .default(300_000)
        .describe('Milliseconds in which the same text is not sent into the same conversation again.'),
      primaryChannel: z
        .strictObject({
          channelType: z.string().min(1).max(32),
          channelId: z.string().min(1).max(512).describe('The conversation on the platform.'),
          channelInstanceId: z.string().min(1).max(64).optional().describe('Needed when several channels of the type have such a conversation.'),
        })
        .optional()
        .describe('Target of notifications that name none; otherwise the conversation with the newest message.'),
      maxChainDepth: z.int().min(0).max(8).default(0).describe('Notifications that may follow from a notification, one from another; 0: none.'),
      quietHours: QuietHours().optional().describe('When notifications are kept back until the end; never when absent.'),
    })
    .meta({ id: 'AgentNotification' }),
);
export type AgentNotification = z.output<ReturnType<typeof AgentNotification>>;

export const UnattendedApprovals = z.enum(['wait', 'refuse']);

const AgentSessions = once(() =>
  z.strictObject({
    reset: SessionReset().prefault({}).describe('When the agent stops seeing earlier messages, which stay readable.'),
    keepReasoning: z
      .boolean()
      .default(true)
      .describe('Stores the reasoning that a model streams before an answer with the answer, for people who read the conversation.'),
  }),
);

const AgentWorkspace = once(() =>
  z.strictObject({
    promptFiles: z
      .boolean()
      .default(true)
      .describe(
        'Adds the files of the workspace that describe the agent, its rules and its owner (SOUL.md, AGENTS.md, USER.md …) to the system prompt.',
      ),
    maxFileChars: z.int().min(100).max(200_000).default(20_000).describe('Maximum characters of each of these files.'),
  }),
);

const AgentSkills = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true),
    allow: z.array(z.string().min(1).max(64)).max(500).default([]).describe('The only skills of this agent; all when empty.'),
    deny: z.array(z.string().min(1).max(64)).max(500).default([]).describe('Skills to remove; overrides everything.'),
    maxAutoInject: z
      .int()
      .min(0)
      .max(20)
      .default(3)
      .describe('Skills that match a message and are placed before it automatically. The others of the list are one call of the tool `skill` away.'),
  }),
);

const KnowledgeSource = once(() =>
  z
    .strictObject({
      name: z
        .string()
        .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'expected small letters, digits and hyphens')
        .describe('Short name, unique for the agent; the model and people select the source by it.'),
      folder: z
        .string()
        .min(2)
        .max(4096)
        .regex(/^(?:\/|[A-Za-z]:[\\/])/, 'expected an absolute path')
        .optional()
        .describe('A folder of this machine, with everything below it. Links in it are not followed.'),
      site: z
        .url({ protocol: /^https?$/ })
        .max(2048)
        .optional()
        .describe('Address of a public page: it and the pages that it leads to, at the same host and below the same path.'),
      trusted: z
        .boolean()
        .default(false)
        .describe('Only you write there: its text does not count as text from outside. Otherwise it is fenced and taints the turn.'),
      maxFiles: z.int().min(1).max(50_000).default(10_000).describe('Files that are indexed, the first ones by name; of a site at most 500 pages.'),
      everyMinutes: z
        .int()
        .min(1)
        .max(10_080)
        .default(15)
        .describe('Minutes between two comparisons with the index, in addition to those after notices of the system; for a site at least 60.'),
    })
    .refine(({ folder, site }) => (folder === undefined) !== (site === undefined), 'expected either `folder` or `site`')
    .meta({ id: 'KnowledgeSource' }),
);

/** What an agent answers from, beyond its memories and workspace. */
export const AgentKnowledge = once(() =>
  z.strictObject({
    sources: z
      .array(KnowledgeSource())
      .max(32)
      .refine((sources) => new Set(sources.map(({ name }) => name)).size === sources.length, 'expected different names')
      .default([])
      .describe('Folders and sites whose text is indexed and searched with the tool `knowledge_search`.'),
  }),
);

/** One agent, as written under `agents.<id>` in config.yaml and as taken by `agents.create`. */
export const AgentConfig = z
  .strictObject({
    name: z.string().min(1).max(128).default('Gate').describe('The name by which the agent introduces itself.'),
    model: ModelName.optional().describe('Primary model; the first one found otherwise.'),
    fallbackModels: z
      .array(ModelName)
      .max(8)
      .default([])
      .describe('Tried in order when the primary model fails in a way that another model may not.'),
    instructions: z.string().max(65536).default('').describe("The operator's own text for the system prompt."),
    temperature: z.number().min(0).max(2).optional().describe('Sampling temperature; the provider decides otherwise.'),
    maxTokens: z.int().min(1).optional().describe('Output tokens per model call; the model decides otherwise.'),
    maxSteps: z.int().min(1).max(1000).default(150).describe('Model calls per turn.'),
    turnTimeoutMs: z.int().min(1000).max(86_400_000).default(600_000).describe('Wall clock of one turn, in milliseconds.'),
    modelTimeoutMs: z.int().min(1000).max(3_600_000).default(180_000).describe('Deadline of one model call, in milliseconds.'),
    maxConcurrentRuns: z.int().min(1).max(10_000).default(64).describe('Turns of different conversations that run at once; further ones wait.'),
    budgets: AgentBudgets.prefault({}).describe(
      'Hard caps; a call that could exceed one is not made, and the turn ends with `budget_exceeded`. A change applies from the next model call on.',
    ),
    circuitBreaker: z
      .strictObject({
        failures: z.int().min(1).default(5).describe('Consecutive failed turns that open it.'),
        resetMs: z.int().min(100).default(60_000).describe('How long it stays open before one turn may try again.'),
      })
      .prefault({}),
    tools: ToolPolicy.prefault({}).describe('Tools of this agent.'),
    background: section(AgentBackground, absent.background).describe(
      'Long tool calls that continue in the background, while the agent continues its turn.',
    ),
    originTools: z
      .partialRecord(TurnOrigin, z.array(ToolPattern))
      .default({})
      .describe('State-changing or outward tools that turns of an untrusted origin (`v1`, `webhook`, `mcp`) may still use.'),
    autonomy: z
      .strictObject({
        profile: z.enum(autonomyProfiles).optional().describe('As `autonomy.profile`, for this agent; that of the installation when absent.'),
        adminTrust: z
          .boolean()
          .default(false)
          .describe(
            'Scripts of this agent may call `lease.revoke`, `run.kill` and `autonomy.evict` for runs of their principal. Off: no agent stops a root run.',
          ),
      })
      .prefault({})
      .describe('What the agent may start beyond its own turn: sub-agents, graphs, messages, scripts.'),
    approvals: z
      .strictObject({
        trustWorkspace: z
          .boolean()
          .default(false)
          .describe('Files of the workspace and the output of commands do not count as text from outside: only you and the agent write there.'),
        unattended: UnattendedApprovals.optional().describe('Overrides `approvals.unattended` of the installation, for this agent.'),
      })
      .prefault({})
      .describe('Assumptions about this agent of the gate before state-changing and outward calls; the rest is in `approvals` of the installation.'),
    exec: section(AgentExec, absent.exec).describe(
      'Commands that the agent runs (`exec`); the limits are capped by those of the section `exec` of the installation.',
    ),
    cacheRetention: z.enum(['none', 'short', 'long']).default('short').describe("Requested retention of the prefix in the provider's prompt cache."),
    memory: section(AgentMemory, absent.memory).describe('What the agent remembers over conversations.'),
    knowledge: section(AgentKnowledge, absent.knowledge).describe('Folders and sites that the agent answers from.'),
    session: section(AgentSessions, absent.session).describe('Conversations of this agent.'),
    heartbeat: section(AgentHeartbeat, absent.heartbeat).describe(
      'Heartbeats: the agent checks its checklist (HEARTBEAT.md) and new events on its own.',
    ),
    notification: section(AgentNotification, absent.notification).describe('Notifications that programs send to users of this agent.'),
    workspace: section(AgentWorkspace, absent.workspace).describe('The folder in which the agent works.'),
    skills: section(AgentSkills, absent.skills).describe('Skills: instructions in folders, managed by `skills.*`.'),
    operationModels: z
      .partialRecord(z.enum(operationTypes), OperationModel)
      .default({})
      .describe(
        'Models per kind of work: `interactive` is the conversation itself and overrides `model`; `compaction` and `condensation` summarise a conversation, `memoryReview` finds what is worth remembering; `cron`, `heartbeat` and `subagent` are the turns of jobs, of heartbeats and of sub-agents. Everything else uses the model of the agent, which is also the fallback of those set here.',
      ),
  })
  .meta({ id: 'AgentConfig' });
export type AgentConfig = z.output<typeof AgentConfig>;
export type AgentConfigInput = z.input<typeof AgentConfig>;

/** A partial configuration: keys given replace, objects merge, `null` removes an optional key. */
export const AgentConfigPatch = z
  .record(z.string(), z.unknown())
  .meta({ id: 'AgentConfigPatch', description: 'Some keys of AgentConfig; objects are merged, lists replaced, null resets a key to its default.' });
