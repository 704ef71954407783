import type { NewMessages } from '../../../packages/server/src/features/conversations/sessions/api.ts';
import type { ModelCallRow, TurnRow } from '../../../packages/server/src/features/conversations/turns/store.ts';
import type { NewLease, RootEntry } from '../../../packages/server/src/features/delegation/autonomy/api.ts';
import type { GraphRow } from '../../../packages/server/src/features/delegation/graph/rows.ts';
import type { RunEnding } from '../../../packages/server/src/features/delegation/subagents/api.ts';
import type { RunAcceptance } from '../../../packages/server/src/features/delegation/subagents/requests/acceptance.ts';
import type { JobRow } from '../../../packages/server/src/features/unattended/cron/store.ts';
import type { NewWork } from '../../../packages/server/src/features/unattended/durable/api.ts';
import type { InboxMessage } from '../../../packages/server/src/features/unattended/inbox/api.ts';
import type { DeliveryIntake } from '../../../packages/server/src/features/unattended/webhooks/deliveries/delivery-intake.ts';
import type { MemoryInput } from '../../../packages/server/src/features/knowledge/memory/entries/store.ts';
import { agentId, atMs, liveBoot, type Names, principalId } from './driver.ts';

/** The least that each kind of row needs; what matters to a driver replaces it. */

export const workOf = (names: Names, kind: string, index: number | string = 0): NewWork => ({
  id: names.id('wi', `${kind}-${index}`),
  kind,
  key: names.id(kind, index),
  digest: '',
  agentId,
  payload: {},
  atMs,
});

export const turnOf = (names: Names, index: number | string, ref: string, more: Partial<TurnRow> = {}): TurnRow => ({
  id: names.id('tn', index),
  conversationRef: ref,
  sessionKey: `hammer:${names.round}`,
  agentId,
  principalId,
  origin: 'rpc',
  state: 'completed',
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 1,
  inputTokens: 1,
  outputTokens: 1,
  costNano: 1,
  reservedNano: null,
  traceId: '',
  startedAtMs: atMs,
  endedAtMs: atMs,
  bootId: liveBoot,
  ...more,
});

/** A call that costs 1. */
export const modelCall: ModelCallRow = {
  provider: 'hammer',
  model: 'hammer',
  operation: 'interactive',
  outcome: 'ok',
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  estimated: false,
  costNano: 1,
  savedNano: null,
  latencyMs: 1,
  responseId: null,
  atMs,
};

/** Two messages, which cost 1. */
export const messagesOf = (names: Names, turnId: string, ref: string): NewMessages => ({
  ref,
  agentId,
  principalId,
  sessionKey: `hammer:${names.round}`,
  turnId,
  steps: 1,
  toolCalls: 0,
  inputTokens: 1,
  outputTokens: 1,
  costNano: 1,
  messages: (['user', 'assistant'] as const).map((role) => ({
    role,
    content: `${role} of ${turnId}`,
    toolJson: null,
    attachmentsJson: null,
    createdAtMs: atMs,
  })),
  atMs,
});

export const messageOf = (names: Names, opKey: string, side: string | number = ''): InboxMessage => ({
  id: names.id('in', `${opKey}${side}`),
  opKey: names.id('op', opKey),
  digest: '',
  source: 'turn',
  agentId,
  conversationRef: null,
  principalId,
  level: 'info',
  text: opKey,
  atMs,
});

export const jobOf = (names: Names, index: number | string, more: Partial<JobRow> = {}): JobRow => ({
  id: names.id('cj', index),
  agentId: names.id('agent', 0),
  name: names.id('job', index),
  source: 'authored',
  principalId,
  tokenId: 'root',
  scheduleJson: JSON.stringify({ kind: 'every', everyMs: 120_000, anchorMs: atMs }),
  payloadJson: JSON.stringify({ kind: 'agent_turn', message: 'Go' }),
  policiesJson: '{}',
  state: 'scheduled',
  pauseReason: null,
  nextRunAtMs: atMs,
  dueAtMs: atMs,
  highWaterMs: 0,
  errors: 0,
  activeExecutionId: null,
  claimedForMs: null,
  claimedAtMs: null,
  endedAtMs: null,
  revision: 1,
  createdAtMs: atMs,
  authorJson: null,
  ...more,
});

export const rootOf = (rootRunId: string, kind: RootEntry['kind']): RootEntry => ({
  rootRunId,
  kind,
  agentId,
  principalId,
  conversationRef: null,
  origin: 'rpc',
  profile: 'standard',
  atMs,
});

export const leaseOf = (names: Names, index: number | string, rootRunId: string, parentLeaseId: string | null = null): NewLease => ({
  id: names.id('ls', index),
  rootRunId,
  parentLeaseId,
  runId: names.id('sr', index),
  agentId,
  principalId,
  caps: [],
  issuedAtMs: atMs,
  expiresAtMs: atMs * 2,
  bearerDigest: null,
  bootId: liveBoot,
});

export const runOf = (names: Names, index: number | string, rootRunId: string, more: Partial<RunAcceptance['row']> = {}): RunAcceptance => {
  const id = names.id('sr', index);
  const work: NewWork = { ...workOf(names, 'subagent', index), key: id, payload: { runId: id }, owed: true };
  const lease = leaseOf(names, index, rootRunId);
  return {
    row: {
      id,
      rootRunId,
      leaseId: lease.id,
      parentRunId: null,
      depth: 1,
      agentId,
      principalId,
      tokenId: 'root',
      requesterKey: names.id('requester', 0),
      requesterRef: names.ref(0),
      requesterAgentId: agentId,
      counted: 1,
      conversationRef: names.ref(1_000),
      sessionKey: `subagent:gateway:${id}`,
      task: 'Look',
      optionsJson: JSON.stringify({ message: 'Look', asked: {} }),
      graphId: null,
      nodeId: null,
      workId: work.id,
      queuedAtMs: atMs,
      steeredAtMs: null,
      announceTo: 'conversation',
      announceRef: names.ref(0),
      announceTargetJson: '{}',
      announceRunId: null,
      ...more,
    },
    work,
    lease,
    root: rootOf(rootRunId, 'run'),
  };
};

/** An end that spent 3. */
export const endingOf = (runId: string): RunEnding => ({
  runId,
  state: 'completed',
  endReason: 'completed',
  errorKind: null,
  cause: null,
  summary: 'said',
  resultText: 'said',
  resultRefJson: null,
  telemetryJson: null,
  tainted: 0,
  tokens: 3,
  costNano: 3,
  atMs,
});

export const graphOf = (names: Names, index: number | string, more: Partial<GraphRow> = {}): GraphRow => ({
  id: names.id('gr', index),
  principalId: names.id('principal', 0),
  tokenId: 'root',
  agentId,
  label: null,
  definitionJson: '{}',
  variablesJson: '{}',
  nodeCount: 2,
  rootRunId: names.id('root-graph', index),
  requesterJson: null,
  byAgent: 0,
  announceJson: '{}',
  nodeProgress: 0,
  workId: names.id('wi', `graph-${index}`),
  state: 'running',
  cancelReason: null,
  createdAtMs: atMs,
  startedAtMs: atMs,
  endedAtMs: null,
  waitedMs: 0,
  ...more,
});

export const deliveryOf = (
  names: Names,
  index: number | string,
  more: { readonly liveKey?: string; readonly side?: number } = {},
): DeliveryIntake => {
  const id = names.id('wd', `${index}${more.side === undefined ? '' : `-${more.side}`}`);
  return {
    delivery: {
      id,
      mappingId: 'hammer',
      action: 'agent',
      ownState: null,
      liveKey: more.liveKey ?? null,
      senderId: null,
      bodyDigest: names.id('body', index),
      bodyBytes: 1,
      agentId,
      conversationRef: names.ref(0),
      sessionKey: `hammer:${names.round}`,
      message: 'Go',
      remoteAddress: null,
      traceId: '',
      replayOf: null,
      receivedAtMs: atMs,
    },
    sameSinceMs: 0,
    workId: `wi_${id}`,
    fits: false,
    template: undefined,
    mappingPrincipalId: principalId,
    auditId: `au_${id}`,
    principalId,
    event: undefined,
  };
};

export const memoryOf = (names: Names, index: number | string, more: Partial<MemoryInput> = {}): MemoryInput => ({
  id: names.id('m', index),
  agentId: names.id('agent', 0),
  principalId,
  content: `memory ${index} of ${names.round}`,
  memoryType: 'working',
  trustLevel: 'learned',
  taintLevel: 'clean',
  sourceWho: 'agent',
  sourceChannel: null,
  conversationRef: null,
  sessionKey: null,
  tags: '[]',
  createdAtMs: atMs,
  expiresAtMs: null,
  confidence: null,
  pinned: 0,
  cites: [],
  ...more,
});
