import { hash } from 'node:crypto';
import { WakeLane, WakeReason } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { WorkHandler, WorkItem } from '../../durable/api.ts';
import type { InboxApi, InboxMessage } from '../../inbox/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import { readAnswer } from './answer.ts';
import type { Coalescer, Occurrence } from '../timing/coalescer.ts';
import type { HeartbeatConfig } from '../config.ts';
import { type Alert, afterFailure, healthy, isStopping } from './health.ts';
import type { BeatEnd, BeatEnding, HeartbeatOperations } from './operations.ts';
import type { HeartbeatStateRow } from '../store.ts';

/** Data with which another process can resume a beat; its message stays the same. */
export const BeatPayload = z.strictObject({
  correlationId: z.string(),
  lane: WakeLane,
  reason: WakeReason,
  startedAtMs: z.int(),
  eventCount: z.int(),
  message: z.string(),
  fenced: z.strictObject({ text: z.string(), source: z.string(), clean: z.boolean().default(false) }).optional(),
});
export type BeatPayload = z.output<typeof BeatPayload>;

/** Result of a beat's turn, stored with the work in case the process dies before acting on it. */
export const BeatResult = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ok'), text: z.string() }),
  z.strictObject({ kind: z.literal('tell'), text: z.string() }),
  /** `failedModel` is present only when the provider is at fault. */
  z.strictObject({
    kind: z.literal('failed'),
    errorKind: z.string(),
    spoke: z.boolean(),
    failedModel: z.string().optional(),
    retryAfterMs: z.number().optional(),
  }),
]);
export type BeatResult = z.output<typeof BeatResult>;

export interface BeatDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly turn: TurnsApi['durable'];
  readonly inbox: InboxApi;
  readonly targetOf: (agentId: string) => ConversationTarget;
  readonly operations: Pick<HeartbeatOperations, 'end'>;
  readonly coalescer: Coalescer;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly fingerprintOf: (agent: Agent) => string;
  readonly stateOf: (agentId: string) => HeartbeatStateRow;
  /** Called when the state of an agent, and with it the time of its next beat, has changed. */
  readonly changed: (state: HeartbeatStateRow, failure: BeatFailure | undefined) => void;
}

/** A beat that failed because of its provider; its events, if any, are queued again. */
export interface BeatFailure {
  readonly model: string;
  readonly owesEvents: boolean;
}

type Beat = Pick<WorkItem, 'id'> & { readonly agentId: string; readonly occurrence: Occurrence; readonly eventCount: number };

/** No token has this id, as it contains a colon. Beats have the permissions of the agent's administrator and own their conversation. */
const identity = { principalId: 'system:heartbeat', tokenId: 'system:heartbeat', scopes: ['rpc'] } as const satisfies CallContext['identity'];

export const beatPrincipal = identity.principalId;

/** Delay before retrying to store the end of a beat. */
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;

/** Runs the turns of beats and handles their results. */
export function createBeats(deps: BeatDeps) {
  const { db, bus, clock, log, coalescer } = deps;

  const handler: WorkHandler = async (item, signal) => {
    const payload = BeatPayload.parse(item.payload);
    const { correlationId, lane, reason, startedAtMs, eventCount } = payload;
    const agentId = item.agentId ?? '';
    const occurrence = { correlationId, lane, reason, startedAtMs, agentId };
    const beat = { id: item.id, agentId, occurrence, eventCount };
    coalescer.adopt(occurrence);
    const agent = deps.agents.find(agentId);
    const settings = agent === undefined ? undefined : deps.settingsOf(agent);
    if (agent === undefined || settings?.enabled !== true || agent.suspended) return abandon(beat, item);
    let result: BeatResult;
    let isUnknown = false;
    try {
      const { settled, state, ...outcome } = await runTurn(item, payload, agent, settings, signal);
      if (!settled) {
        coalescer.end(occurrence, { status: 'unsettled', eventCount, errorKind: 'lost_claim' });
        return 'settled';
      }
      // The beat waits for an approval; the occurrence ends with it.
      if (state === 'accepted') return 'settled';
      isUnknown = state === 'unknown';
      result = resultOf(outcome, settings);
    } catch (error) {
      // The next start resumes the beat.
      if (signal.aborted) throw error;
      if (!(error instanceof AppError)) log.error({ agentId, err: error }, 'Heartbeat failed');
      const errorKind = error instanceof AppError ? error.code : 'internal';
      await finish(beat, { kind: 'failed', errorKind, spoke: false }, { item, signal });
      return 'settled';
    }
    await finish(beat, result, { isUnknown, signal });
    return 'settled';
  };

  function runTurn(item: WorkItem, payload: BeatPayload, agent: Agent, settings: HeartbeatConfig, signal: AbortSignal) {
    const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
    return deps.turn(
      {
        workId: item.id,
        owner: item.owner,
        fence: item.fence,
        origin: 'heartbeat',
        target: deps.targetOf(agent.id),
        message: payload.message,
        ...(payload.fenced !== undefined && { fenced: payload.fenced }),
        ...(settings.model !== undefined && { model: settings.model }),
        ...(settings.toolPolicy !== undefined && { toolPolicy: settings.toolPolicy }),
        ...(settings.lightContext && { lightContext: true, historyTurns: 0 }),
        timeoutMs: settings.timeoutMs,
        operation: 'heartbeat',
        kept: (outcome) => resultOf(outcome, settings).kind === 'tell',
        settle(outcome) {
          const result = resultOf(outcome, settings);
          return result.kind === 'failed' ? { state: 'failed', errorKind: result.errorKind, result } : { state: 'done', result };
        },
      },
      call,
    );
  }

  /** Ends a beat that was switched off after its admission; its events stay queued for the next one. */
  async function abandon(beat: Beat, item: WorkItem) {
    const errorKind = 'agent_unavailable';
    await db.write(deps.operations.end, {
      workId: beat.id,
      agentId: beat.agentId,
      handled: false,
      messages: [],
      once: false,
      settle: { claim: item, errorKind },
      atMs: clock.now(),
      ageNowMs: clock.ageNow(),
    });
    coalescer.end(beat.occurrence, { status: 'aborted', eventCount: beat.eventCount, errorKind });
    return 'settled' as const;
  }

  /**
   * Stores and announces the result of a beat, once. With a signal it retries failed writes until the daemon stops; otherwise a beat
   * whose turn is settled would be reported both now and by the next start, in different ways.
   */
  async function finish(
    beat: Beat,
    result: BeatResult,
    how: { readonly item?: WorkItem; readonly isUnknown?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const { id: workId, agentId, occurrence, eventCount } = beat;
    const agent = deps.agents.find(agentId);
    const atMs = clock.now();
    const isUnknown = how.isUnknown === true;
    const settings = agent === undefined ? undefined : deps.settingsOf(agent);
    const before = deps.stateOf(agentId);
    const failedModel = result.kind === 'failed' ? result.failedModel : undefined;
    const owesEvents = failedModel !== undefined && eventCount > 0 && !isUnknown;
    const { state, alert } =
      result.kind === 'failed' && agent !== undefined && settings !== undefined
        ? afterFailure(
            before,
            { kind: result.errorKind, atMs, fingerprint: deps.fingerprintOf(agent), owesEvents, retryAfterMs: result.retryAfterMs },
            settings,
          )
        : { state: healthy(before), alert: undefined };
    const messages = settings === undefined ? [] : messagesOf(beat, result, alert, settings, atMs);
    const ending: BeatEnding = {
      workId,
      agentId,
      // Events that may have been acted on are not delivered again.
      handled: result.kind !== 'failed' || isUnknown,
      ...(agent !== undefined && { state }),
      messages,
      once: result.kind === 'tell',
      ...(how.item !== undefined && result.kind === 'failed' && { settle: { claim: how.item, errorKind: result.errorKind } }),
      atMs,
      ageNowMs: clock.ageNow(),
    };
    const { closed, delivered } = await writeEnd(ending, how.signal);
    if (closed) {
      if (agent !== undefined) deps.changed(state, failedModel === undefined ? undefined : { model: failedModel, owesEvents });
      for (const message of messages) if (delivered.includes(message.id)) deps.inbox.announce(message);
      if (alert !== undefined) bus.emit('scheduler:heartbeat_alert', { agentId, ...withoutOwed(alert), timestamp: atMs });
    }
    const failure = result.kind === 'failed' ? { errorKind: result.errorKind } : {};
    coalescer.end(occurrence, { status: statusOf(result, isUnknown), eventCount, ...failure });
  }

  async function writeEnd(ending: BeatEnding, signal: AbortSignal | undefined): Promise<BeatEnd> {
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(longestRetryMs, 2 * waitMs)) {
      try {
        return await db.write(deps.operations.end, ending);
      } catch (error) {
        if (signal === undefined || signal.aborted) throw error;
        log.error({ agentId: ending.agentId, err: error, waitMs }, 'Failed to store the result of a heartbeat; retrying');
      }
      await pause(waitMs, signal);
    }
  }

  /** Waits; rejects when the signal aborts. */
  async function pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = clock.after(ms, resolve);
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      cancel();
      signal.removeEventListener('abort', abort);
    }
  }

  function messagesOf(beat: Beat, result: BeatResult, alert: Alert | undefined, settings: HeartbeatConfig, atMs: number): InboxMessage[] {
    const { id, agentId } = beat;
    const { ref, principalId } = deps.targetOf(agentId);
    const message = (level: InboxMessage['level'], text: string): InboxMessage => ({
      id: newId('in'),
      opKey: `heartbeat:${id}:${level}`,
      digest: hash('sha256', `${agentId}\n${text}`, 'base64url'),
      source: 'heartbeat',
      agentId,
      conversationRef: ref,
      principalId,
      level,
      text,
      atMs,
    });
    if (result.kind === 'failed') {
      if (alert === undefined || !settings.showAlerts) return [];
      return [message('alert', alertText(agentId, alert))];
    }
    if (result.kind === 'ok') return settings.showOk ? [message('info', result.text === '' ? 'Nothing to report.' : result.text)] : [];
    return settings.showAlerts ? [message('info', result.text)] : [];
  }

  /** Ends a beat during which processes died repeatedly; its effects are unknown. A committed turn is left to the next start. */
  async function gaveUp(item: WorkItem, errorKind: string): Promise<void> {
    const { correlationId, lane, reason, startedAtMs, eventCount } = BeatPayload.parse(item.payload);
    const agentId = item.agentId ?? '';
    const occurrence = { correlationId, lane, reason, startedAtMs, agentId };
    coalescer.adopt(occurrence);
    await finish({ id: item.id, agentId, occurrence, eventCount }, { kind: 'failed', errorKind, spoke: true }, { item, isUnknown: true });
  }

  return { handler, finish, gaveUp };
}

const withoutOwed = ({ owesEvents: _, ...alert }: Alert) => alert;

function alertText(agentId: string, { reason, consecutiveErrors, backoffMs, owesEvents }: Alert): string {
  const what = `The heartbeat of agent ${agentId} failed (${reason}${consecutiveErrors > 1 ? `, ${consecutiveErrors} consecutive failures` : ''}).`;
  const retry = `retried in ${backoffMs < 60_000 ? `${Math.ceil(backoffMs / 1000)} s` : `${Math.ceil(backoffMs / 60_000)} min`} at the earliest.`;
  if (!isStopping(reason)) return `${what} It will be ${retry}`;
  const stopped = `${what} It is stopped until it is triggered manually, the configuration changes or the provider answers again.`;
  return owesEvents ? `${stopped} Its queued events will be ${retry}` : stopped;
}

function resultOf(outcome: TurnOutcome, { ackMaxChars }: HeartbeatConfig): BeatResult {
  // A tool can have run only if the model has answered.
  const { failure, model: failedModel, tokensUsed } = outcome;
  if (failure !== undefined)
    return {
      kind: 'failed',
      errorKind: failure.kind,
      spoke: tokensUsed.output > 0,
      ...(failure.transient && { failedModel, retryAfterMs: failure.retryAfterMs }),
    };
  return readAnswer(outcome.text, ackMaxChars);
}

function statusOf(result: BeatResult, isUnknown: boolean) {
  if (isUnknown) return 'unsettled';
  if (result.kind !== 'failed') return 'settled';
  return result.spoke ? 'unsettled' : 'failed_before_side_effect';
}
