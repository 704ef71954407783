import type { TurnCommit } from '../../packages/server/src/features/conversations/turns/store.ts';
import type { EndedRecord } from '../../packages/server/src/features/operations/traces/api.ts';
import type { AcceptedBatch } from '../../packages/server/src/transactions/accept-channel-messages.ts';
import { idBefore } from '../../packages/server/src/kernel/ids.ts';

/** What a household does in a day. */
export interface Pace {
  readonly turns: number;
  readonly callsPerTurn: number;
  readonly events: number;
  readonly subAgents: number;
}

export const dayMs = 86_400_000;
export const bootId = 'boot-year';
const agents = ['default', 'coder', 'home', 'researcher'];
const models = ['openai/gpt-mini', 'anthropic/haiku', 'anthropic/sonnet', 'openrouter/large'];
const principals = ['tk_ada', 'tk_ben', 'tk_cam'];
/** Conversations of a person with an agent that are used at the same time. */
const parallel = 3;

const pick = <T>(from: readonly [T, ...T[]] | readonly T[], n: number): T => from[n % from.length] as T;
const suffix = (n: number) => `7000-8000-${n.toString(16).padStart(12, '0')}`;

/** Returns the turns of a day with their calls; the tenth part of them belongs to sub-agents, whose messages are stored. */
export function turnsOf(day: number, startMs: number, pace: Pace): TurnCommit[] {
  return Array.from({ length: pace.turns }, (_, index) => {
    const n = day * pace.turns + index;
    // People sleep for eight hours.
    const atMs = startMs + 7 * 3_600_000 + Math.floor((index / pace.turns) * 16 * 3_600_000);
    const isRun = index < pace.subAgents;
    const ref = isRun ? `cv_run_${n}` : `cv_${n % (agents.length * principals.length * parallel)}_${Math.floor(day / 7)}`;
    const sessionKey = isRun ? `subagent:gateway:${n}` : 'chat';
    const [agentId, principalId] = [pick(agents, n), pick(principals, n)];
    const [provider = '', model = ''] = pick(models, n >> 2).split('/');
    const calls = Array.from({ length: pace.callsPerTurn }, (_one, call) => ({
      provider,
      model,
      operation: 'interactive',
      outcome: 'ok' as const,
      inputTokens: 4_000 + (n % 997),
      outputTokens: 200 + (call % 7),
      cacheReadTokens: 3_000,
      cacheWriteTokens: 0,
      estimated: false,
      // Some calls have no known price.
      costNano: n % 101 === 0 ? null : 1_000_003 + (n % 8_191) * 7 + call,
      savedNano: 31,
      latencyMs: 900,
      responseId: `resp_${n}_${call}`,
      atMs: atMs + call * 1_000,
    }));
    const id = `${idBefore('tn', atMs)}-${suffix(n)}`;
    const turn = {
      id,
      conversationRef: ref,
      sessionKey,
      agentId,
      principalId,
      origin: 'rpc' as const,
      state: 'completed' as const,
      finishReason: 'stop',
      failureKind: null,
      model: `${provider}/${model}`,
      steps: calls.length,
      inputTokens: 4_000 * calls.length,
      outputTokens: 200 * calls.length,
      costNano: 1,
      reservedNano: null,
      traceId: n.toString(16).padStart(32, '0'),
      startedAtMs: atMs,
      endedAtMs: atMs + 9_000,
      bootId,
    };
    const message = {
      content: `Message ${n} about the house, the garden and what to buy.`,
      toolJson: null,
      attachmentsJson: null,
      createdAtMs: atMs,
    };
    const messages = [
      { ...message, role: 'user' as const },
      { ...message, role: 'assistant' as const },
    ];
    const stored = {
      ref,
      agentId,
      principalId,
      sessionKey,
      turnId: id,
      steps: 1,
      toolCalls: 0,
      inputTokens: 1,
      outputTokens: 1,
      costNano: 1,
      messages,
      atMs,
    };
    return { turn, calls, conversation: isRun ? stored : null };
  });
}

/** Returns the messages of a day over a chat platform, each with its answer, which was sent. */
export function chatsOf(day: number, startMs: number, { subAgents: count }: Pace): AcceptedBatch {
  const atMs = startMs + 9 * 3_600_000;
  const place = { instance: 'chat', channelType: 'irc', conversationId: 'ada', threadId: null, conversationKind: 'direct' as const };
  const message = {
    senderId: 'account:ada',
    senderName: 'ada',
    text: 'What is there to buy?',
    platformId: null,
    subject: null,
    attachmentsJson: null,
  };
  const none = { digest: '', subject: null, replyTo: null, editsId: null, buttonsJson: null, fileJson: null, ambiguousSinceMs: null, bootId: null };
  const about = { agentId: 'default', conversationRef: null };
  return {
    messages: Array.from({ length: count }, (_, index) => {
      const key = suffix(day * count + index);
      const sent = {
        state: 'accepted' as const,
        attempts: 1,
        repeats: 0,
        unsolicited: null,
        platformId: key,
        errorKind: null,
        error: null,
        begunAtMs: atMs,
        endedAtMs: atMs,
      };
      const times = { notBeforeMs: atMs, expiresAtMs: atMs + 3_600_000, createdAtMs: atMs };
      const part = {
        id: `${idBefore('ob', atMs)}-${key}-01`,
        opKey: `answer:${key}`,
        part: 1,
        parts: 1,
        text: 'Milk and bread.',
        principalId: 'tk_ada',
        turnId: null,
      };
      return {
        row: {
          ...place,
          ...message,
          ...about,
          id: `${idBefore('cm', atMs)}-${key}`,
          eventKey: key,
          isForwarded: 0 as const,
          isBot: 0 as const,
          verdict: 'turn' as const,
          sentAtMs: atMs,
          receivedAtMs: atMs,
        },
        reply: [{ ...place, ...none, ...about, ...part, ...sent, ...times }],
      };
    }),
  };
}

/** Returns the trace of a turn, with the steps of a turn that calls tools. */
export function traceOf({ turn, calls }: TurnCommit): EndedRecord {
  const tokens = { in: turn.inputTokens, out: turn.outputTokens, cached: 0, cacheWritten: 0 };
  const text = { digest: '0123456789abcdef', bytes: 812 };
  return {
    id: turn.id,
    kind: 'turn',
    traceId: turn.traceId,
    conversationRef: turn.conversationRef,
    sessionKey: turn.sessionKey,
    agentId: turn.agentId,
    principalId: turn.principalId,
    origin: 'rpc',
    startedAtMs: turn.startedAtMs,
    endedAtMs: turn.startedAtMs + 9_000,
    outcome: 'ok',
    endReason: 'stop',
    model: turn.model,
    modelCalls: calls.length,
    toolCalls: calls.length - 1,
    toolErrors: 0,
    tokens,
    costNano: 1,
    synthetic: false,
    error: null,
    refs: {},
    facts: { steps: calls.length },
    steps: calls.flatMap((call, index) => {
      const at = index * 1_000;
      const step = { input: text, output: text, outcome: 'ok' as const };
      return [
        { ...step, id: 2 * index, kind: 'model' as const, name: turn.model ?? '', at, ms: 900, tokens, costNano: call.costNano },
        { ...step, id: 2 * index + 1, kind: 'tool' as const, name: 'read', at: at + 900, ms: 40, facts: { callId: `call_${index}` } },
      ];
    }),
    droppedSteps: 0,
  };
}
