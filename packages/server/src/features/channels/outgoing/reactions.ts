import type { ResultInput } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import type { Act } from '../../../channels/port.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import { derivedId } from '../../../kernel/ids.ts';
import type { InboxApi, InboxMessage } from '../../unattended/inbox/api.ts';
import { type Acts, valueOf } from './acts.ts';
import type { MessageOperation, Target } from './api.ts';
import { otherContent } from './sends.ts';
import { beginAct, endAct } from './store.ts';

type Reacted = ResultInput<'message.react'>;

export interface ReactionsDeps extends Pick<Core, 'db' | 'clock'> {
  readonly acts: Acts;
  readonly inbox: InboxApi;
  readonly bootId: string;
}

type Entered = Omit<MessageOperation, 'state'>;

export interface Reaction {
  readonly target: Target;
  readonly messageId: string;
  readonly emoji: string;
  readonly operation: Entered | undefined;
}

/** Adds reactions; one with an identity is entered before the platform is asked, and is never added twice. */
export function createReactions({ db, clock, acts, inbox, bootId }: ReactionsDeps) {
  /** Operations of this process that have not ended, by id. */
  const running = new Map<string, Promise<Reacted>>();

  /** Returns how to ask the platform; fails when it is not connected or has no reactions. */
  function prepare({ target: { to }, messageId, emoji }: Reaction, call: CallContext): () => Promise<Act<object>> {
    const { adapter } = acts.platformOf(to);
    const { react } = adapter;
    if (react === undefined) throw acts.notOffered('message.react', to, 'reactions');
    const message = { conversationId: to.conversationId, threadId: to.threadId ?? undefined, messageId };
    return () => acts.run(adapter, call, (options) => react.call(adapter, message, emoji, options));
  }

  async function askOnce(reaction: Reaction, operation: Entered, ask: () => Promise<Act<object>>): Promise<Reacted> {
    const { id } = operation;
    const act = await ask();
    const atMs = clock.now();
    if (act.is === 'done') await db.write(endAct, { id, is: 'done', alongside: [], atMs });
    else if (act.kind === 'ambiguous') await park(operation, reaction.target, atMs);
    else await db.write(endAct, { id, is: 'undone', alongside: [], atMs });
    valueOf(act);
    return resultOf(reaction);
  }

  /** A person decides: the outcome cannot be found out. */
  async function park({ id }: Pick<MessageOperation, 'id'>, { to, agentId, principalId, conversationRef }: Target, atMs: number): Promise<void> {
    const alert: InboxMessage = {
      id: derivedId('in', id, 'unknown'),
      opKey: `reaction:${id}:unknown`,
      digest: hash('sha256', id),
      source: 'channel',
      agentId,
      conversationRef,
      principalId,
      level: 'alert',
      text: `A reaction in ${to.conversationId} (${to.channelType}, "${to.instance}") may have been added; it is not repeated.`,
      atMs,
    };
    if (await db.write(endAct, { id, is: 'unknown', alongside: [inbox.deliverCall(alert)], atMs })) inbox.announce(alert);
  }

  return async (reaction: Reaction, call: CallContext): Promise<Reacted> => {
    const { operation } = reaction;
    const ask = prepare(reaction, call);
    if (operation === undefined) {
      valueOf(await ask());
      return resultOf(reaction);
    }
    const begun = await db.write(beginAct, { ...operation, state: 'started' });
    if (begun.is === 'conflict') throw otherContent();
    if (begun.is === 'new') {
      const work = askOnce(reaction, operation, ask).finally(() => running.delete(operation.id));
      running.set(operation.id, work);
      return work;
    }
    const before = running.get(operation.id);
    if (before !== undefined) return before;
    if (begun.state === 'done') return resultOf(reaction);
    // An earlier run of the daemon asked, and ended before the answer was stored.
    if (begun.state === 'started' && begun.bootId !== bootId) await park(operation, reaction.target, clock.now());
    throw new AppError('precondition_failed', 'This reaction may have been added and is not repeated: an operator decides', {
      param: 'operation_id',
    });
  };
}

const resultOf = ({ target, messageId, emoji }: Reaction): Reacted => ({
  reacted: true,
  channelId: target.to.conversationId,
  messageId,
  emoji,
});
