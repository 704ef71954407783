import { hash } from 'node:crypto';
import type { CallContext } from '../../../kernel/call-context.ts';
import { newId } from '../../../kernel/ids.ts';
import type { NewWork } from '../../unattended/durable/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { ConversationTarget } from '../../conversations/sessions/api.ts';
import type { DurableTurn } from '../../conversations/turns/api.ts';
import type { SendRow, SendState } from './api.ts';

/** Kind of the durable work that brings a message to its conversation; one piece for each answer. */
export const sendKind = 'session_send';
/** In an answer: the exchange ends here, and nobody is told of it. */
export const skipWord = '[ANNOUNCE_SKIP]';
/** Characters of an answer that are handed on; all of it stands in its conversation. */
const maxAnswer = 65_536;

/** One piece of work for each answer. */
export const answerKey = (sendId: string, leg: number): string => `${sendId}/${leg}`;

export const workOf = ({ id, toAgentId }: SendRow, leg: number, atMs: number): NewWork => ({
  ...(leg > 0 && { owed: true }),
  id: newId('wi'),
  kind: sendKind,
  key: answerKey(id, leg),
  digest: id,
  agentId: toAgentId,
  payload: { sendId: id, leg },
  atMs,
});

interface Side extends ConversationTarget {
  readonly isTarget: boolean;
}

/** The conversation that gives an answer, and the other one; the target gives those with even numbers. */
export function sidesOf(send: SendRow, leg: number): { readonly here: Side; readonly there: Omit<Side, 'principalId'> | undefined } {
  const target: Side = {
    isTarget: true,
    ref: send.toRef,
    sessionKey: send.toSessionKey,
    agentId: send.toAgentId,
    principalId: send.toPrincipalId,
  };
  const { fromRef: ref, fromSessionKey: sessionKey, fromAgentId: agentId, principalId } = send;
  if (ref === null || sessionKey === null || agentId === null) return { here: target, there: undefined };
  const sender: Side = { isTarget: false, ref, sessionKey, agentId, principalId };
  return leg % 2 === 0 ? { here: target, there: sender } : { here: sender, there: target };
}

/** What the turn of an answer is asked. Words of a token are its own; those of an agent are data for every other turn, `clean` where it had read nothing from outside. */
export function askedOf(send: SendRow & SendState, leg: number, clean: boolean): Pick<DurableTurn, 'origin' | 'message' | 'fenced'> {
  if (leg === 0 && !send.byAgent) return { origin: 'rpc', message: send.text };
  const { there } = sidesOf(send, leg);
  const who = there === undefined ? 'Another conversation' : `The conversation ${there.sessionKey} (agent ${there.agentId}, ${there.ref})`;
  const what = leg === 0 ? 'sent a message here' : 'answers';
  const how =
    send.mode === 'ping-pong'
      ? ` What you say goes back to it; write ${skipWord} when nothing more needs to be said.`
      : send.mode === 'wait'
        ? ' It waits for what you answer.'
        : '';
  const text = leg === 0 ? send.text : (send.response ?? '');
  return { origin: 'subagent', message: `${who} ${what}.${how}`, fenced: { text, source: 'conversation', clean } };
}

export const bound = (text: string): string => (text.length <= maxAnswer ? text : `${text.slice(0, maxAnswer - 2).toWellFormed()} …`);

/** Whether an answer leads to a further one. */
export const goesOn = (send: SendRow, leg: number, answer: string): boolean =>
  send.mode === 'ping-pong' && leg < send.maxTurns && answer.trim() !== '' && !answer.includes(skipWord);

/**
 * What the owner of the conversation is told: the last answer, when nobody waits for it or who waits is somebody else.
 * Words of a run of a sub-agent are for whoever asked for the run alone.
 */
export function inboxOf(send: SendRow, answer: string, isAwaited: boolean, atMs: number): InboxMessage | undefined {
  const isOwners = send.toPrincipalId === send.principalId;
  if ((isAwaited && isOwners) || answer.trim() === '' || answer.includes(skipWord) || isSubAgentKey(send.toSessionKey)) return undefined;
  return {
    id: newId('in'),
    opKey: `session_send:${send.id}`,
    digest: hash('sha256', answer, 'base64url'),
    source: 'turn',
    agentId: send.toAgentId,
    conversationRef: send.toRef,
    principalId: send.toPrincipalId,
    level: 'info',
    text: answer,
    atMs,
  };
}

/** What the sender is told of a message that was accepted, found no answer, and that nobody waits for. */
export function failedNote(send: SendRow, why: string, atMs: number): InboxMessage {
  const text = `A message to ${send.toSessionKey} (agent ${send.toAgentId}) was not answered: ${why}. Next step: send it again.`;
  return {
    id: newId('in'),
    opKey: `session_send:${send.id}:failed`,
    digest: hash('sha256', text, 'base64url'),
    source: 'turn',
    agentId: send.toAgentId,
    conversationRef: send.toRef,
    principalId: send.principalId,
    level: 'alert',
    text,
    atMs,
  };
}

/** Conversations of sub-agents have keys of their own, which no caller can make: they name the run. */
export const isSubAgentKey = (sessionKey: string): boolean => sessionKey.startsWith('subagent:gateway:');

export const callOf = (send: SendRow, identity: CallContext['identity'], requestId: string, signal: AbortSignal): CallContext => ({
  identity,
  traceId: send.traceId,
  requestId,
  signal,
  transport: 'process',
});
