import type { CronCounter, CronDeliveryState, CronRunState } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { isSilent } from '../../../../runtime/silent-answer.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Destination, EndpointsApi } from '../../../channels/delivery/api.ts';
import type { WorkClaim } from '../../durable/api.ts';
import type { SystemEvent } from '../../heartbeat/api.ts';
import type { InboxMessage } from '../../inbox/api.ts';
import type { NewMessages } from '../../../conversations/sessions/api.ts';
import type { ClaimPlan } from './claim.ts';
import type { DependencyOutcome, OccurrenceRow, RunEnd } from './occurrence-store.ts';
import { deliveryKeyOf } from './sends.ts';
import type { CronWork } from './work.ts';

/** Input of `finishOccurrence`. */
export interface Finish {
  /** Absent when the work ends in the same commit with its turn, or has ended before. */
  readonly claim?: WorkClaim;
  readonly end: RunEnd;
  readonly dependency: DependencyOutcome;
  readonly defaultMaxErrors: number;
  readonly inbox?: InboxMessage;
  /** Written only when `inbox` is new. */
  readonly conversation?: NewMessages;
  readonly systemEvent?: SystemEvent;
  /** Present when the run waited: it started late and covers the times of its job that passed meanwhile. */
  readonly late?: LateRun;
}

/** Result of `finishOccurrence`. */
export interface Finished {
  readonly row: OccurrenceRow;
  /** Providers failed too often, and the job was paused. */
  readonly paused: boolean;
  /** The inbox message is new there. */
  readonly delivered: boolean;
  /** The target conversation is new. */
  readonly created: boolean;
}

/** An end as it was stored; `done` is undefined when the occurrence had ended before, or another process holds its claim. */
export interface StoredEnd {
  readonly plan: Finish;
  readonly done: Finished | undefined;
}

export interface LateRun {
  /** Present when times passed: the job's next time, and a record of each passed one. */
  readonly passed?: Pick<ClaimPlan, 'advance' | 'skipped'>;
}

/** Result of an occurrence, before deliveries are decided. */
export interface RunResult {
  readonly status: Exclude<CronRunState, 'started'>;
  readonly errorKind?: string;
  readonly reason?: string;
  /** The provider's error message, shown to owners only. */
  readonly cause?: string;
  /** Number of calls that needed an approval and were not run. */
  readonly effectsRefused?: number;
  readonly counters?: readonly CronCounter[];
  readonly dependency?: DependencyOutcome;
  /** Text to deliver, if there is a recipient; written by the job's owner when `ours`, else by a model or a script. */
  readonly text?: string;
  readonly ours?: boolean;
  /** Whether the author of `text` had read untrusted text; undefined counts as true. */
  readonly tainted?: boolean;
  /** Set when the work was given up: the owner of the job is notified. */
  readonly givenUp?: true;
}

export interface FinishDeps {
  readonly defaultMaxErrors: number;
  readonly nowMs: number;
  readonly fence: FenceText;
  /** Whether the job's owner may see causes of failures. */
  readonly forOwner: boolean;
  readonly address: EndpointsApi['address'];
}

const maxReason = 1000;
const maxExcerpt = 1000;
/** Results that could not be sent to a chat by then are not sent any more. */
const chatLifeMs = 24 * 60 * 60_000;

/** Returns whether there is a recipient: the target, or for a delivery without one the owner of the job. */
export const isDeliveryAsked = ({ payload, policies }: Pick<CronWork, 'payload' | 'policies'>): boolean =>
  policies.deliveryTarget !== undefined || payload.kind === 'delivery';

/** Returns everything to store when an occurrence ends. */
export function finishOf(work: CronWork, result: RunResult, deps: FinishDeps): Finish {
  const { executionId, policies } = work;
  const { effectsRefused } = result;
  const text = result.text?.trim() ?? '';
  const ours = result.ours === true;
  const isReportable = text !== '' && (ours || !isSilent(text));
  const isAsked = isDeliveryAsked(work);
  const delivery =
    isAsked && isReportable
      ? deliveryOf(
          work,
          policies.deliveryTarget,
          { text: effectsRefused === undefined ? text : `${text}\n\n(${refusedEffects(effectsRefused)})`, ours, clean: result.tainted === false },
          deps,
        )
      : undefined;
  const excerpt = policies.continuationMode === 'heartbeat_excerpt' && isReportable && result.status === 'completed';
  return {
    end: {
      executionId,
      status: result.status,
      deliveryStatus: deliveryStatusOf(isAsked, delivery, result),
      errorKind: result.errorKind ?? null,
      reason: result.reason === undefined ? null : cut(result.reason, maxReason),
      cause: result.cause === undefined ? null : cut(result.cause, maxReason),
      effectsRefused: result.effectsRefused ?? 0,
      countersJson: result.counters === undefined ? null : JSON.stringify(result.counters),
      atMs: deps.nowMs,
    },
    dependency: result.dependency ?? 'neutral',
    defaultMaxErrors: deps.defaultMaxErrors,
    // The owner of the job is alerted to an outage that outlasted the run's maximum wait.
    ...(delivery?.messages ??
      (result.dependency === 'dependency_error' || result.givenUp === true || effectsRefused !== undefined
        ? { inbox: alertOf(work, result, deps) }
        : {})),
    ...(excerpt && {
      systemEvent: eventOf(work, {
        text: `Job "${work.jobName}" ended: ${cut(text, maxExcerpt)}`,
        clean: result.tainted === false,
        atMs: deps.nowMs,
      }),
    }),
  };
}

/** The result when it is not known how far a run got. */
export const unknownResult = {
  status: 'unknown',
  errorKind: 'owner_lost',
  reason: 'The daemon stopped during an operation that must not be repeated; how far it got is unknown.',
} as const satisfies RunResult;

/** Returns the end of an occurrence whose work is over without it. */
export function endOfLost(
  { executionId, deliveryStatus }: Pick<OccurrenceRow, 'executionId' | 'deliveryStatus'>,
  { defaultMaxErrors, nowMs: atMs }: Pick<FinishDeps, 'defaultMaxErrors' | 'nowMs'>,
): Finish {
  return {
    end: { executionId, deliveryStatus, ...unknownResult, cause: null, effectsRefused: 0, countersJson: null, atMs },
    dependency: 'neutral',
    defaultMaxErrors,
  };
}

function deliveryStatusOf(isAsked: boolean, delivery: Delivery | undefined, { status, text }: RunResult): CronDeliveryState {
  if (!isAsked || status === 'dispatched') return 'not_requested';
  if (delivery !== undefined) return delivery.status;
  if (status === 'unknown') return 'unknown';
  // There is no text to deliver, or it asks for silence.
  return text === undefined && status !== 'completed' && status !== 'skipped' ? 'pre_send_failed' : 'suppressed';
}

/** Returns the event for the agent's next heartbeat. */
export function eventOf(
  { executionId, agentId }: CronWork,
  { urgent, ...event }: { readonly text: string; readonly clean: boolean; readonly atMs: number; readonly urgent?: boolean },
): SystemEvent {
  return { ...event, agentId, source: 'cron', opKey: `cron:${executionId}`, ...(urgent === true && { urgent: 'cron' as const }) };
}

function alertOf(
  { executionId, jobId, agentId, jobName, principalId }: CronWork,
  { status, reason, cause, givenUp, effectsRefused, dependency }: RunResult,
  { forOwner, nowMs: atMs }: FinishDeps,
): InboxMessage {
  const isLost = givenUp === true || dependency === 'dependency_error';
  const refused = effectsRefused === undefined ? '' : `, ${refusedEffects(effectsRefused)}`;
  const what = givenUp === true ? 'was given up' : isLost ? 'failed after waiting for its model provider' : `ended: ${status}`;
  const causes = forOwner && cause !== undefined ? [sentence(`Cause: ${cause}`)] : [];
  const text = [
    `Job "${jobName}" ${what}${refused}.`,
    ...(reason === undefined ? [] : [sentence(reason)]),
    ...causes,
    ...(isLost ? [`Next step: \`gatehouse cron run ${jobId}\` runs it again.`] : []),
  ].join(' ');
  return {
    id: newId('in'),
    opKey: `cron:${executionId}`,
    digest: hash('sha256', text),
    source: 'cron',
    agentId,
    conversationRef: null,
    principalId,
    level: 'alert',
    text,
    atMs,
  };
}

/** A delivery as it is stored; that to a chat is known only when it was sent. */
interface Delivery {
  readonly messages: Pick<Finish, 'inbox' | 'conversation'>;
  readonly status: Extract<CronDeliveryState, 'accepted' | 'unknown' | 'pre_send_failed'>;
}

function deliveryOf(
  work: CronWork,
  target: CronWork['policies']['deliveryTarget'],
  { text, ours, clean }: { readonly text: string; readonly ours: boolean; readonly clean: boolean },
  { nowMs, fence, address }: FinishDeps,
): Delivery {
  const { executionId, agentId, jobName, policies } = work;
  const inbox: InboxMessage = {
    id: newId('in'),
    opKey: deliveryKeyOf(executionId),
    digest: hash('sha256', text),
    source: 'cron',
    agentId,
    conversationRef: null,
    principalId: work.principalId,
    level: 'info',
    text,
    atMs: nowMs,
  };
  if (target === undefined) return { messages: { inbox }, status: 'accepted' };
  const { conversationRef, conversationScope } = target.conversation;
  const { principalId, sessionKey } = conversationScope.partition;
  const isWritten = target.destinationEndpoint.conversationId === conversationRef || policies.continuationMode === 'origin_history';
  const chat = chatOf(target.destinationEndpoint);
  const addressed: InboxMessage = { ...inbox, principalId, conversationRef: isWritten ? conversationRef : null };
  const delivered: InboxMessage = chat === undefined ? addressed : address(addressed, chat, { lifeMs: chatLifeMs });
  const messages: Pick<Finish, 'inbox' | 'conversation'> = {
    inbox: delivered,
    ...(isWritten && {
      conversation: {
        ref: conversationRef,
        agentId,
        principalId,
        sessionKey,
        turnId: executionId,
        steps: 0,
        toolCalls: 0,
        inputTokens: 0,
        outputTokens: 0,
        costNano: 0,
        // A run may have read untrusted text that is not part of this conversation.
        messages: [
          {
            role: 'assistant',
            content: ours ? text : fence(text, { source: 'cron', job: jobName, clean }),
            toolJson: null,
            attachmentsJson: null,
            createdAtMs: nowMs,
          },
        ],
        atMs: nowMs,
      },
    }),
  };
  return { messages, status: chat === undefined ? 'accepted' : delivered.parts === undefined ? 'pre_send_failed' : 'unknown' };
}

/** Returns the chat that an endpoint is; undefined for the built-in channel. */
export function chatOf({
  channelType,
  channelInstanceId: instance,
  conversationId,
  threadId,
  conversationKind,
}: NonNullable<CronWork['policies']['deliveryTarget']>['destinationEndpoint']): Destination | undefined {
  return channelType === 'gateway' ? undefined : { instance, channelType, conversationId, threadId: threadId ?? null, conversationKind };
}

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
const cut = (text: string, length: number) => (text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`);
