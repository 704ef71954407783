import type { MessageFeedback } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../../kernel/audit.ts';
import type { Clock } from '../../../../../kernel/clock.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../../../kernel/handlers.ts';
import type { FeedbackRow } from '../../api.ts';
import { keepFeedback } from './feedback-store.ts';
import { messagesOfTurn, turnOfTrace } from './past-turn-store.ts';
import type { Addressing } from '../reach.ts';
import { identityOf } from '../view.ts';

const maxNoteBytes = 2048;

/** Handler of `session.feedback`: what people think of answers. */
export function createFeedback(deps: {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly addressing: Addressing;
}): HandlersOf<'session.feedback'> {
  const { db, bus, clock } = deps;

  async function answeredTurn(conversationId: number, traceId: string | undefined): Promise<string> {
    const turnId =
      traceId === undefined
        ? (await db.read(messagesOfTurn, { conversationId })).at(-1)?.turnId
        : await db.read(turnOfTrace, { conversationId, traceId });
    if (turnId !== undefined) return turnId;
    if (traceId === undefined) throw new AppError('not_found', 'The conversation has no answer yet');
    throw new AppError('not_found', 'The conversation has no answer of this trace', { param: 'traceId' });
  }

  return {
    'session.feedback': async ({ turnId: named, traceId, rating, note, ...address }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'session.feedback is for people, not for agents');
      if (note !== undefined && Buffer.byteLength(note) > maxNoteBytes)
        throw new AppError('invalid_params', `note: expected at most ${maxNoteBytes} bytes`, { param: 'note' });
      if (named !== undefined && traceId !== undefined)
        throw new AppError('invalid_params', 'turnId, traceId: expected one of them', { param: 'traceId' });
      const row = await deps.addressing.existing(address, call);
      const turnId = named ?? (await answeredTurn(row.id, traceId));
      const atMs = clock.now();
      const audit = auditRow(call, atMs, {
        actionType: 'session.feedback',
        classification: 'mutate',
        target: row.ref,
        metadata: { turnId, rating: rating ?? 'none' },
      });
      const { principalId } = call.identity;
      const seq = await db.write(keepFeedback, { ref: row.ref, turnId, rating, note: note ?? null, principalId, atMs, audit });
      announceAudit(bus, audit);
      const feedback = rating === null ? undefined : toFeedback({ turnId, seq, rating, note: note ?? null, principalId, atMs });
      return { ...identityOf(row), turnId, seq, ...(feedback !== undefined && { feedback }) };
    },
  };
}

export function toFeedback({ rating, note, principalId, atMs }: FeedbackRow): MessageFeedback {
  return { rating, ...(note !== null && { note }), by: principalId, at: atMs };
}
