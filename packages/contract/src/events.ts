import * as z from 'zod';
import { event } from './event.ts';
import { resetTables } from './methods/obs-reports.ts';
import { delegationEvents } from './events-delegation.ts';
import { LogLine } from './methods/daemon.ts';
import { EffectsRefused } from './shared/waiting.ts';
import { cronDeliveryStates, cronRunIdentity, cronRunStates } from './shared/cron.ts';
import {
  ChannelCapabilities,
  ChannelState,
  channelVerdicts,
  deliveryStates,
  notificationPriorities,
  notificationSuppressions,
} from './shared/channel.ts';
import { AgentId, conversationIdentity, ConversationRef } from './shared/session.ts';
import { EpochMs, FinishReason, TurnOrigin } from './shared/turn.ts';
import { WebhookDeliveryId, webhookDeliveryStates } from './shared/webhook.ts';
import { WakeLane, WakeReason } from './shared/wake.ts';

const timestamp = EpochMs;
const turn = { turnId: z.string(), traceId: z.string(), origin: TurnOrigin };
const risk = z.enum(['low', 'medium', 'high']);
/** Trajectory events contain only counts (json-rpc.md §6). */
const counted = z.strictObject({ agentId: AgentId, count: z.int().min(0), timestamp });

const toolCall = {
  ...conversationIdentity,
  turnId: z.string(),
  callId: z.string(),
  toolName: z.string(),
  description: z.string().max(200).describe('One line for people: what the call does.'),
  timestamp,
};

/** Fields common to the three wake events of one occurrence (http-gateway.md §6). */
const wake = {
  correlationId: z.string(),
  target: z.enum(['agent', 'monitoring']),
  agentId: AgentId.optional(),
  lane: WakeLane,
};

const channel = { channelType: z.string(), channelInstanceId: z.string() };
const notified = { agentId: AgentId, priority: z.enum(notificationPriorities) };
const notifiedIn = { channelType: z.string(), channelId: z.string().describe('The conversation on the platform.'), entryId: z.string() };

/** Every event kind that exists so far (http-gateway.md §6). `timestamp` is in milliseconds since the epoch. */
export const events = {
  'message:received': event({
    category: 'Messages',
    visibility: 'owner',
    summary: 'A message reached an agent and its turn starts.',
    payload: () =>
      z.strictObject({
        ...conversationIdentity,
        ...turn,
        message: z.strictObject({ id: z.string(), text: z.string(), senderId: z.string(), timestamp: EpochMs }),
        timestamp,
      }),
  }),
  'message:sent': event({
    category: 'Messages',
    visibility: 'owner',
    summary: 'The answer of a turn is complete and stored.',
    payload: () =>
      z.strictObject({ ...conversationIdentity, ...turn, messageId: z.string(), content: z.string(), finishReason: FinishReason, timestamp }),
  }),
  'message:streaming': event({
    category: 'Messages',
    visibility: 'owner',
    transient: true,
    summary: 'Part of an answer that is being written; parts of one read are joined, and a reader that falls behind misses some.',
    payload: () => z.strictObject({ ...conversationIdentity, ...turn, messageId: z.string(), delta: z.string(), timestamp }),
  }),
  'message:thinking': event({
    category: 'Messages',
    visibility: 'owner',
    transient: true,
    onRequest: true,
    summary: 'Part of the reasoning that precedes an answer, where the provider returns it; a reader that falls behind misses some.',
    payload: () => z.strictObject({ ...conversationIdentity, ...turn, delta: z.string(), timestamp }),
  }),
  'session:created': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'The first turn of a conversation was stored, or a fork of another one.',
    payload: () => z.strictObject({ ...conversationIdentity, timestamp }),
  }),
  'session:updated': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A conversation was given a title or tags, pinned or archived.',
    payload: () => z.strictObject({ ...conversationIdentity, timestamp }),
  }),
  'session:expired': event({
    category: 'Sessions',
    visibility: 'owner',
    summary:
      'A conversation was reset, by a call or by the policy of its agent, cleared or deleted: its earlier messages are no longer sent to the model.',
    payload: () =>
      z.strictObject({
        ...conversationIdentity,
        reason: z.enum(['reset', 'reset_conversation', 'deleted', 'daily', 'idle']),
        timestamp,
      }),
  }),
  'audit:event': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'A security-relevant decision or change was recorded; the row was committed with the change.',
    payload: () =>
      z.strictObject({
        auditId: z.string(),
        actionType: z.string(),
        classification: z.enum(['read', 'mutate', 'destructive', 'security']),
        outcome: z.enum(['success', 'failure', 'denied']),
        principalId: z.string(),
        target: z.string().optional(),
        metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])).optional(),
        timestamp,
      }),
  }),
  'approval:requested': event({
    category: 'Approvals',
    visibility: 'admin',
    summary: 'A call of a tool waits for an approval; the request is stored.',
    payload: () =>
      z.strictObject({
        requestId: z.string(),
        toolName: z.string(),
        action: z.string(),
        params: z.unknown().describe('All arguments of the call, live secrets replaced by `[REDACTED]`.'),
        paramsBytes: z.int().min(0),
        digest: z.string(),
        reason: z.string(),
        ...conversationIdentity,
        origin: TurnOrigin,
        trustLevel: z.enum(['clean', 'tainted']),
        createdAt: EpochMs,
        timeoutMs: z.int().min(0),
        timestamp,
      }),
  }),
  'approval:resolved': event({
    category: 'Approvals',
    visibility: 'admin',
    summary: 'A call of a tool was approved or denied; `system:timeout` denies undecided calls, `system:dropped` those whose conversation is gone.',
    payload: () =>
      z.strictObject({
        requestId: z.string(),
        agentId: AgentId,
        conversationRef: z.string(),
        digest: z.string(),
        approved: z.boolean(),
        approvedBy: z.string(),
        reason: z.string().optional(),
        resolvedAt: EpochMs,
        timestamp,
      }),
  }),
  'security:injection_detected': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'Text from outside looks like an attempt to instruct the model; it stays inside its fence.',
    payload: () =>
      z.strictObject({
        source: z.enum(['user_input', 'tool_output', 'external_content', 'memory_write', 'workspace_file']),
        patterns: z.array(z.string()),
        riskLevel: risk,
        agentId: AgentId.optional(),
        conversationRef: z.string().optional(),
        traceId: z.string().optional(),
        timestamp,
      }),
  }),
  'security:memory_tainted': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'Text to remember looks like an instruction to the model: it was stored as `external`, or refused.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        originalTrustLevel: z.enum(['system', 'learned', 'external']),
        adjustedTrustLevel: z.enum(['external', 'blocked']),
        patterns: z.array(z.string()),
        blocked: z.boolean(),
        timestamp,
      }),
  }),
  'security:injection_rate_exceeded': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'One principal or source exceeded the threshold of suspicious texts within the window.',
    payload: () =>
      z.strictObject({
        principalId: z.string(),
        count: z.int().min(1),
        threshold: z.int().min(1),
        windowMs: z.int().min(1),
        action: z.enum(['warn', 'reinforce', 'terminate']),
        timestamp,
      }),
  }),
  'config:patched': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'The configuration was changed, by a call or by hand, and what can take effect without a restart has.',
    payload: () =>
      z.strictObject({
        section: z.string().optional().describe('Absent when the change was not in one section: a rollback, or the whole text.'),
        key: z.string().optional(),
        from: z.enum(['rpc', 'cli', 'file', 'rollback', 'agents']),
        patchedBy: z.string().describe('Id of the principal.'),
        version: z.int().min(1),
        changed: z.array(z.string()).describe('Keys whose value changed.'),
        restart: z.array(z.string()).describe('Those of `changed` that need a restart.'),
        timestamp,
      }),
  }),
  'security:warn': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'Something that an operator should check: failed logins, unsafe permissions, a refused origin.',
    payload: () =>
      z.strictObject({
        category: z.string(),
        message: z.string(),
        agentId: AgentId.optional(),
        remoteAddress: z.string().optional(),
        timestamp,
      }),
  }),
  'secret:accessed': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'A secret was looked up in the store: for the configuration that came in force, or in a search for keys of model providers.',
    payload: () =>
      z.strictObject({
        secretName: z.string(),
        outcome: z
          .enum(['success', 'denied', 'not_found'])
          .describe('`denied`: sealed with another install key. `not_found`: neither the environment nor the store has the name.'),
        timestamp,
      }),
  }),
  'secret:modified': event({
    category: 'Security',
    visibility: 'admin',
    summary: 'A secret of the store was created, replaced or removed, or inserted from the copy in the home folder.',
    payload: () => z.strictObject({ secretName: z.string(), action: z.enum(['created', 'updated', 'deleted', 'imported']), timestamp }),
  }),
  'observability:metrics': event({
    category: 'Observability',
    visibility: 'system',
    transient: true,
    summary: 'Health of the process, every 30 seconds.',
    payload: () =>
      z.strictObject({
        rssBytes: z.int(),
        heapUsedBytes: z.int(),
        heapTotalBytes: z.int(),
        externalBytes: z.int(),
        eventLoopDelayMs: z.strictObject({ min: z.number(), max: z.number(), mean: z.number(), p50: z.number(), p99: z.number() }),
        activeTurns: z.int().min(0),
        uptimeSeconds: z.number(),
        timestamp,
      }),
  }),
  'observability:token_usage': event({
    category: 'Observability',
    visibility: 'owner',
    summary: 'One model call was made; its tokens and cost are booked with the turn. Costs are in US dollars, null when the price is not known.',
    payload: () =>
      z.strictObject({
        traceId: z.string(),
        turnId: z.string(),
        agentId: AgentId,
        conversationRef: z.string().optional(),
        provider: z.string(),
        model: z.string(),
        operation: z.string(),
        tokens: z.strictObject({ prompt: z.int().min(0), completion: z.int().min(0), total: z.int().min(0) }),
        cacheReadTokens: z.int().min(0),
        cacheWriteTokens: z.int().min(0),
        cost: z.strictObject({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWrite: z.number(), total: z.number() }).nullable(),
        savedVsUncached: z.number().nullable(),
        estimated: z.boolean(),
        latencyMs: z.number().min(0),
        responseId: z.string().optional(),
        timestamp,
      }),
  }),
  'observability:reset': event({
    category: 'Observability',
    visibility: 'admin',
    summary: 'Observability data was reset; `rowsDeleted` counts deleted rows.',
    payload: () =>
      z.strictObject({
        admin: z.string().describe('The principal that reset it.'),
        table: z.enum([...resetTables, 'all']),
        rowsDeleted: z.union([z.int().min(0), z.record(z.string(), z.int().min(0))]).describe('By kind of data when all were reset.'),
        timestamp,
      }),
  }),
  'tool:started': event({
    category: 'Tools',
    visibility: 'owner',
    transient: true,
    summary: 'A tool call of a turn starts.',
    payload: () => z.strictObject(toolCall),
  }),
  'tool:output': event({
    category: 'Tools',
    visibility: 'owner',
    transient: true,
    onRequest: true,
    summary: 'Output of a command while it runs, without secrets; of fast output, the newest part.',
    payload: () => z.strictObject({ ...toolCall, delta: z.string(), timestamp }),
  }),
  'tool:finished': event({
    category: 'Tools',
    visibility: 'owner',
    transient: true,
    summary: 'A tool call of a turn ended; with `background` it continues without its turn.',
    payload: () =>
      z.strictObject({
        ...toolCall,
        durationMs: z.int().min(0),
        outcome: z.enum(['ok', 'error', 'denied', 'background']),
        result: z.string().max(2000).optional().describe('Beginning of the result, without secrets; absent when the call was not made.'),
      }),
  }),
  'terminal.drive_promoted': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'A wait for a terminal session outlasted its turn and continues in the background.',
    payload: () => counted,
  }),
  'terminal.session_evicted': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'A terminal session was ended, because nobody had used it for `exec.terminalIdleMs`.',
    payload: () => counted,
  }),
  'background_task:promoted': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'A long tool call continues in the background, without its turn.',
    payload: () => counted,
  }),
  'background_task:completed': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'A call in the background ended, with whatever outcome.',
    payload: () => counted,
  }),
  'background_task:notified': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'Background results were added to a running turn; `count` is how many.',
    payload: () => counted,
  }),
  'background_task:reentered': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'Background results returned to their conversation in a separate turn; `count` is how many.',
    payload: () => counted,
  }),
  'learning:memory_demoted': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'Memories that are unused, or that turns failed with, were demoted.',
    payload: () => counted,
  }),
  'learning:memory_evicted': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'Memories that expired, faded or exceeded the limits were deleted.',
    payload: () => counted,
  }),
  'learning:lifecycle_swept': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'A sweep of the lifecycle ended; `count` is the number of entries examined.',
    payload: () => counted,
  }),
  'learning:memory_failure_attributed': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'Turns with recalled memories failed; `count` is the memories on which that was booked.',
    payload: () => counted,
  }),
  'learning:skill_promoted': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'Skills whose turns keep ending well are listed first; `count` is how many.',
    payload: () => counted,
  }),
  'learning:skill_demoted': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'Skills whose turns keep failing are no longer placed before questions automatically; `count` is how many.',
    payload: () => counted,
  }),
  'skill:loaded': event({
    category: 'Skills',
    visibility: 'admin',
    summary: 'A skill was found, or changed, and can be used; without an agent it is a shared one.',
    payload: () =>
      z.strictObject({
        skillName: z.string(),
        agentId: AgentId.optional(),
        source: z.enum(['workspace', 'local', 'uploaded', 'created', 'imported']),
        timestamp,
      }),
  }),
  'skill:executed': event({
    category: 'Skills',
    visibility: 'owner',
    summary: 'A turn that used a skill ended; `durationMs` counts from when it got the skill.',
    payload: () => z.strictObject({ skillName: z.string(), agentId: AgentId, durationMs: z.number().min(0), success: z.boolean(), timestamp }),
  }),
  'skill:rejected': event({
    category: 'Skills',
    visibility: 'admin',
    summary: 'A skill was refused before it was written, or is not loaded; `violations` are the rules that it breaks.',
    payload: () =>
      z.strictObject({
        skillName: z.string(),
        agentId: AgentId.optional(),
        reason: z.string(),
        violations: z.array(z.string()),
        timestamp,
      }),
  }),
  'skill:registry_reset': event({
    category: 'Skills',
    visibility: 'admin',
    summary: 'A folder of skills changed and was read again; the counts compare it with its previous state.',
    payload: () => z.strictObject({ clearedMetadata: z.int().min(0), clearedPromptCache: z.int().min(0), timestamp }),
  }),
  'reflect:admitted': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'A review of conversations stored memories; `count` is how many.',
    payload: () => counted,
  }),
  'reflect:funnel': event({
    category: 'Learning',
    visibility: 'admin',
    summary: 'A review of conversations ended: its findings, and how many were stored.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        conversationsReviewed: z.int().min(0),
        extracted: z.int().min(0),
        duplicates: z.int().min(0),
        rejected: z.int().min(0),
        admitted: z.int().min(0),
        durationMs: z.number().min(0),
        timestamp,
      }),
  }),
  'diagnostic:billing_snapshot': event({
    category: 'Diagnostics',
    visibility: 'admin',
    summary:
      'Usage of the model calls of the last 24 hours, by provider: once an hour while calls are made, and with the warning of a budget. Costs are in US dollars; calls whose price is not known add nothing to them.',
    payload: () =>
      z.strictObject({
        providers: z.array(
          z.strictObject({ provider: z.string(), totalCost: z.number().min(0), totalTokens: z.int().min(0), callCount: z.int().min(0) }),
        ),
        totalCost: z.number().min(0),
        timestamp,
      }),
  }),
  'model:catalog_loaded': event({
    category: 'Models',
    visibility: 'system',
    summary: 'The model catalog was built.',
    payload: () => z.strictObject({ providerCount: z.int().min(0), modelCount: z.int().min(0), timestamp }),
  }),
  'model:fallback_attempt': event({
    category: 'Models',
    visibility: 'system',
    summary: 'A model call failed and the next model of the list is tried.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        fromProvider: z.string(),
        fromModel: z.string(),
        toProvider: z.string(),
        toModel: z.string(),
        error: z.string(),
        attemptNumber: z.int().min(1),
        timestamp,
      }),
  }),
  'model:fallback_exhausted': event({
    category: 'Models',
    visibility: 'system',
    summary: 'No model of the list answered.',
    payload: () => z.strictObject({ agentId: AgentId, provider: z.string(), model: z.string(), totalAttempts: z.int().min(1), timestamp }),
  }),
  'model:auth_cooldown': event({
    category: 'Models',
    visibility: 'system',
    summary: 'A provider refused its key or asked to wait; it is not called for a while.',
    payload: () => z.strictObject({ provider: z.string(), keyName: z.string(), cooldownMs: z.int().min(0), failureCount: z.int().min(1), timestamp }),
  }),
  'provider:degraded': event({
    category: 'Providers',
    visibility: 'system',
    summary: 'Calls to a provider fail repeatedly.',
    payload: () => z.strictObject({ provider: z.string(), failingAgents: z.int().min(0), timestamp }),
  }),
  'provider:recovered': event({
    category: 'Providers',
    visibility: 'system',
    summary: 'A degraded provider answered again.',
    payload: () => z.strictObject({ provider: z.string(), timestamp }),
  }),
  'agent:hot_added': event({
    category: 'Agents',
    visibility: 'system',
    summary: 'An agent was created and accepts turns.',
    payload: () => z.strictObject({ agentId: AgentId, timestamp }),
  }),
  'agent:hot_removed': event({
    category: 'Agents',
    visibility: 'system',
    summary: 'An agent was deleted and accepts no more turns.',
    payload: () => z.strictObject({ agentId: AgentId, timestamp }),
  }),
  'scheduler:cron_execution_started': event({
    category: 'Scheduler',
    visibility: 'owner',
    summary: 'An occurrence of a job was claimed and starts; its owner is the creator of the job.',
    payload: () => z.strictObject({ ...cronRunIdentity(), bootId: z.string(), timestamp }),
  }),
  'scheduler:cron_execution_terminal': event({
    category: 'Scheduler',
    visibility: 'owner',
    summary: 'An occurrence of a job ended and its record is stored; `outcomeKind` is its meaning for a job that depends on a provider.',
    payload: () =>
      z.strictObject({
        ...cronRunIdentity(),
        bootId: z.string(),
        terminalAtMs: EpochMs,
        durationMs: z.int().min(0),
        outcomeKind: z.enum(['success', 'dependency_error', 'neutral']),
        executionStatus: z.enum(cronRunStates),
        deliveryStatus: z.enum(cronDeliveryStates),
        errorKind: z.string().optional(),
        effectsRefused: EffectsRefused().optional(),
        timestamp,
      }),
  }),
  'scheduler:heartbeat_wake_admitted': event({
    category: 'Scheduler',
    visibility: 'system',
    summary: 'A heartbeat was requested and is pending; a second request that makes it more urgent announces it again under the same id.',
    payload: () =>
      z.strictObject({
        ...wake,
        retainedReason: WakeReason,
        disposition: z.enum(['new_occurrence', 'occurrence_upgraded']),
        dueAtMs: EpochMs,
        timestamp,
      }),
  }),
  'scheduler:heartbeat_wake_deferred': event({
    category: 'Scheduler',
    visibility: 'system',
    summary: 'A heartbeat that was due has to wait; reported once for each cause.',
    payload: () =>
      z.strictObject({
        ...wake,
        retainedReason: WakeReason,
        reason: z.enum(['session_busy', 'spacing_deferred', 'flood_deferred', 'backoff', 'root_unavailable']),
        nextEligibleAtMs: EpochMs,
        timestamp,
      }),
  }),
  'scheduler:heartbeat_wake_terminal': event({
    category: 'Scheduler',
    visibility: 'system',
    summary:
      'A heartbeat ended, or never started: `skipped` when there was nothing to do, `unsettled` when it is not known how far it got. `eventCount` is the number of events reported to it.',
    payload: () =>
      z.strictObject({
        ...wake,
        status: z.enum(['settled', 'skipped', 'aborted', 'unsettled', 'failed_before_side_effect', 'cancelled_before_start']),
        durationMs: z.int().min(0),
        eventCount: z.int().min(0),
        errorKind: z.string().optional(),
        cancelReason: z.enum(['shutdown', 'disabled', 'suspended', 'stopped', 'agent_deleted']).optional(),
        timestamp,
      }),
  }),
  'scheduler:heartbeat_alert': event({
    category: 'Scheduler',
    visibility: 'admin',
    summary:
      'The heartbeats of an agent fail: at the first permanent failure, or at repeated temporary ones. `reason` is the kind of the last error.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        consecutiveErrors: z.int().min(1),
        classification: z.enum(['transient', 'permanent']),
        reason: z.string(),
        backoffMs: z.int().min(0),
        timestamp,
      }),
  }),
  'inbox:message': event({
    category: 'Inbox',
    visibility: 'owner',
    summary: 'A message was put into the inbox; `inbox.list` has its text.',
    payload: () =>
      z.strictObject({
        id: z.string(),
        source: z.enum(['cron', 'heartbeat', 'webhook', 'turn', 'subagent', 'graph', 'autonomy', 'mcp', 'channel']),
        level: z.enum(['info', 'alert']),
        agentId: AgentId,
        conversationRef: ConversationRef.nullable(),
        timestamp,
      }),
  }),
  'webhook:delivery': event({
    category: 'Webhooks',
    visibility: 'admin',
    summary: 'A delivery was stored, its turn started, or it ended; `webhooks.deliveries` has its content. Beyond the specification.',
    payload: () =>
      z.strictObject({
        deliveryId: WebhookDeliveryId,
        mapping: z.string(),
        agentId: AgentId,
        state: z.enum(webhookDeliveryStates),
        received: z.literal(true).optional().describe('Set in the first event of a delivery, unless it is a test.'),
        timestamp,
      }),
  }),
  'channel:registered': event({
    category: 'Channels',
    visibility: 'admin',
    summary: 'A channel was enabled: it connects from now on.',
    payload: () => z.strictObject({ ...channel, capabilities: ChannelCapabilities(), timestamp }),
  }),
  'channel:deregistered': event({
    category: 'Channels',
    visibility: 'admin',
    summary: 'A channel was disabled, changed or removed, and is not connected any more.',
    payload: () => z.strictObject({ ...channel, timestamp }),
  }),
  'diagnostic:channel_health': event({
    category: 'Channels',
    visibility: 'admin',
    summary: 'The state of a channel changed.',
    payload: () =>
      z.strictObject({
        ...channel,
        previousState: ChannelState(),
        currentState: ChannelState(),
        connectionMode: z.enum(['socket', 'poll', 'built-in']),
        error: z.string().nullable(),
        lastMessageAt: EpochMs.nullable(),
        timestamp,
      }),
  }),
  'channel:message': event({
    category: 'Channels',
    visibility: 'admin',
    summary: 'A message of a platform was stored; `channels.messages` has its text. Beyond the specification.',
    payload: () => z.strictObject({ ...channel, messageId: z.string(), verdict: z.enum(channelVerdicts), agentId: AgentId, timestamp }),
  }),
  'channel:delivery': event({
    category: 'Channels',
    visibility: 'admin',
    summary: 'A message to a platform was sent, was refused, or is tried again; `delivery.list` has its text. Beyond the specification.',
    payload: () => z.strictObject({ ...channel, deliveryId: z.string(), state: z.enum(deliveryStates), agentId: AgentId, timestamp }),
  }),
  'notification:enqueued': event({
    category: 'Channels',
    visibility: 'owner',
    summary: 'A notification was accepted for sending; with `notBefore` it is kept until then. Beyond the specification.',
    payload: () =>
      z.strictObject({ ...notified, ...notifiedIn, origin: z.enum(['program', 'notification']), notBefore: EpochMs.nullable(), timestamp }),
  }),
  'notification:suppressed': event({
    category: 'Channels',
    visibility: 'owner',
    summary: 'A notification was refused, or is kept until the end of quiet hours. Beyond the specification.',
    payload: () => z.strictObject({ ...notified, reason: z.enum(notificationSuppressions), timestamp }),
  }),
  'notification:delivered': event({
    category: 'Channels',
    visibility: 'owner',
    summary: 'The platform accepted a notification. Beyond the specification.',
    payload: () =>
      z.strictObject({
        ...notified,
        ...notifiedIn,
        messageId: z.string().nullable().describe('Its id on the platform.'),
        durationMs: z.int().min(0).describe('Since it was accepted for sending.'),
        timestamp,
      }),
  }),
  ...delegationEvents,
  'daemon:log': event({
    category: 'System',
    visibility: 'admin',
    transient: true,
    onRequest: true,
    summary: 'A line of the log was written; sent only to streams that name this kind.',
    payload: () => LogLine(),
  }),
  'system:error': event({
    category: 'System',
    visibility: 'admin',
    summary: 'A fault of the server itself; details are in its log.',
    payload: () => z.strictObject({ source: z.string(), message: z.string(), requestId: z.string().optional(), timestamp }),
  }),
};

export type Events = typeof events;
export type EventKind = keyof Events;
export type EventPayload<K extends EventKind> = z.output<Events[K]['payload']>;

/** Sorted by declaration. */
export const eventKinds = Object.keys(events) as readonly EventKind[];
