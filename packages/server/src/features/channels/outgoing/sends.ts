import type { MessageStatus, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { newId } from '../../../kernel/ids.ts';
import type { DeliveryApi, OutgoingMessage } from '../delivery/api.ts';
import type { Begun, MessageOperation, NewSend, PartState, Target } from './api.ts';
import { readParts } from './store.ts';

export interface SendsDeps extends Pick<Core, 'db' | 'bus' | 'clock'> {
  readonly delivery: Pick<DeliveryApi, 'partsOf' | 'wake'>;
  readonly sendMessage: Operation<NewSend, Begun>;
}

export interface Send {
  readonly target: Target;
  readonly message: Pick<OutgoingMessage, 'text' | 'replyTo' | 'buttons' | 'files'>;
  readonly operation: Omit<MessageOperation, 'state'> | undefined;
  readonly audit?: AuditRow | undefined;
}

/** How long a call waits for the platform. */
const waitMs = 20_000;

/** Sends messages through the outbox, and waits for what becomes of them. */
export function createSends({ db, bus, clock, delivery, sendMessage }: SendsDeps) {
  return async ({ target, message, operation, audit }: Send, call: CallContext): Promise<ResultInput<'message.send'>> => {
    const { to, agentId, principalId, conversationRef } = target;
    const opKey = `message:${operation?.id ?? newId('mo')}`;
    const parts = delivery.partsOf({ ...message, opKey, to, agentId, principalId, conversationRef, turnId: call.agentCaller?.turn?.turnId ?? null });
    if (parts.length === 0) throw new AppError('invalid_params', 'text: expected more than white space', { param: 'text' });
    const begun = await db.write(sendMessage, { operation: operation && { ...operation, state: 'queued' }, parts, audit });
    if (begun.is === 'conflict') throw otherContent();
    if (begun.is === 'new') {
      if (audit !== undefined) announceAudit(bus, audit);
      delivery.wake(to.instance);
    }
    const ended = await endOf(opKey, call.signal);
    if (ended.some(({ errorKind }) => errorKind === 'queue_full')) throw new AppError('unavailable', 'Too many messages wait to be sent');
    const status = statusOf(ended);
    if (begun.is === 'repeat') requireReceipt(status);
    return resultOf(to.conversationId, ended, status);
  };

  /** Returns the parts of a message when they have ended, or as they are after some seconds. */
  async function endOf(opKey: string, signal: AbortSignal): Promise<PartState[]> {
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    let isLate = false;
    let base: string | undefined;
    const stop = bus.listen(['channel:delivery'], ({ payload }) => {
      if (base === undefined || ('deliveryId' in payload && payload.deliveryId.startsWith(base))) wake();
    });
    const cancel = clock.after(waitMs, () => {
      isLate = true;
      wake();
    });
    signal.addEventListener('abort', wake, { once: true });
    try {
      for (;;) {
        changed = Promise.withResolvers();
        const parts = await db.read(readParts, { opKey });
        if (isLate || signal.aborted || statusOf(parts) !== 'pending') return parts;
        base = parts[0]?.id.replace(/-\d+$/, '');
        await changed.promise;
      }
    } finally {
      stop();
      cancel();
      signal.removeEventListener('abort', wake);
    }
  }
}

/** Returns the state of a message from those of its parts. */
export function statusOf(parts: readonly PartState[]): MessageStatus {
  // What quiet hours hold is to be sent.
  const all = parts.map(({ state, errorKind }) => (state === 'held' && errorKind === 'quiet_hours' ? 'pending' : state));
  const has = (...states: readonly PartState['state'][]) => all.some((state) => states.includes(state));
  if (has('unknown', 'held')) return 'unknown';
  if (has('pending', 'sending')) return 'pending';
  if (!has('rejected', 'expired')) return 'accepted';
  if (has('accepted')) return 'partial';
  return has('rejected') ? 'rejected' : 'pre_send_failed';
}

/** Returns what the outbox knows of a message. */
export async function readSent(db: Db, opKey: string): Promise<{ readonly status: MessageStatus; readonly messageId: string | null }> {
  const parts = await db.read(readParts, { opKey });
  return { status: parts.length === 0 ? 'pre_send_failed' : statusOf(parts), messageId: parts[0]?.platformId ?? null };
}

export const otherContent = (): AppError =>
  new AppError('conflict', 'This operation was begun with other content: nothing was sent', { param: 'operation_id' });

/** A repeat gets the receipt of what was or will be sent; everything else is for a person to decide. */
function requireReceipt(status: MessageStatus): void {
  if (status === 'accepted' || status === 'pending') return;
  const what = status === 'unknown' ? 'may have been sent' : `ended as ${status}`;
  throw new AppError('precondition_failed', `This operation ${what} and is not repeated: \`delivery.list\` shows it, an operator decides`, {
    param: 'operation_id',
  });
}

function resultOf(channelId: string, parts: readonly PartState[], deliveryStatus: MessageStatus): ResultInput<'message.send'> {
  const [first] = parts;
  // A conversation that is deleted meanwhile takes its messages with it.
  if (first === undefined) throw new AppError('not_found', 'The conversation was deleted', { param: 'endpoint' });
  const messageIds = parts.flatMap(({ platformId }) => (platformId === null ? [] : [platformId]));
  const error = deliveryStatus === 'accepted' ? undefined : parts.find((part) => part.error !== null)?.error;
  return {
    messageId: first.platformId ?? first.id,
    channelId,
    deliveryId: first.id,
    deliveryStatus,
    messageIds,
    ...(error != null && { error }),
  };
}
