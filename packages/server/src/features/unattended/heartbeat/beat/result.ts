import { WakeLane, WakeReason, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { TurnOutcome } from '../../../conversations/turns/api.ts';
import type { HeartbeatConfig } from '../config.ts';
import { readAnswer } from './answer.ts';

/** Data with which another process can resume a beat; its message stays the same. */
export const BeatPayload = once(() =>
  z.strictObject({
    correlationId: z.string(),
    lane: WakeLane,
    reason: WakeReason,
    startedAtMs: z.int(),
    eventCount: z.int(),
    message: z.string(),
    fenced: z.strictObject({ text: z.string(), source: z.string(), clean: z.boolean().default(false) }).optional(),
  }),
);
export type BeatPayload = z.output<ReturnType<typeof BeatPayload>>;

/** Result of a beat's turn, stored with the work in case the process dies before acting on it. */
export const BeatResult = once(() =>
  z.discriminatedUnion('kind', [
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
  ]),
);
export type BeatResult = z.output<ReturnType<typeof BeatResult>>;

/** Returns the result of a beat whose turn has ended. */
export function resultOf(outcome: TurnOutcome, { ackMaxChars }: HeartbeatConfig): BeatResult {
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

/** Returns how the occurrence of a beat ends. */
export function statusOf(result: BeatResult, isUnknown: boolean) {
  if (isUnknown) return 'unsettled';
  if (result.kind !== 'failed') return 'settled';
  return result.spoke ? 'unsettled' : 'failed_before_side_effect';
}
