import { hash } from 'node:crypto';
import type { CallContext, ChatEndpoint } from '../../../kernel/call-context.ts';
import { StoredChatEndpoint } from '../../../kernel/chat-endpoint.ts';
import { newId } from '../../../kernel/ids.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import type { NewWork } from '../../unattended/durable/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { ConversationTarget } from '../../conversations/sessions/api.ts';
import type { DurableTurn } from '../../conversations/turns/api.ts';
import type { SendRow, SendState } from './api.ts';
import { answerKey, sendKind } from './work-key.ts';

/** Ends the exchange without an announcement when an answer contains it. */
export const skipMarker = '[ANNOUNCE_SKIP]';
/** Maximum characters of an answer that are passed on; its conversation keeps all of it. */
const maxAnswer = 65_536;

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

/** Returns the answering conversation, and the other one; the target answers the even numbers. */
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

/** Returns the input of an answering turn. Text of a token is its own; text of an agent is fenced, `clean` if it had read nothing from outside. */
export function askedOf(send: SendRow & SendState, leg: number, clean: boolean): Pick<DurableTurn, 'origin' | 'message' | 'fenced'> {
  if (leg === 0 && !send.byAgent) return { origin: 'rpc', message: send.text };
  const { there } = sidesOf(send, leg);
  const who = there === undefined ? 'Another conversation' : `The conversation ${there.sessionKey} (agent ${there.agentId}, ${there.ref})`;
  const what = leg === 0 ? 'sent a message here' : 'answers';
  const how =
    send.mode === 'ping-pong'
      ? ` Your answer is sent back to it; write ${skipMarker} when nothing more needs to be said.`
      : send.mode === 'wait'
        ? ' It is waiting for your answer.'
        : '';
  const text = leg === 0 ? send.text : (send.response ?? '');
  return { origin: 'subagent', message: `${who} ${what}.${how}`, fenced: { text, source: 'conversation', clean } };
}

export const bound = (text: string): string => (text.length <= maxAnswer ? text : `${text.slice(0, maxAnswer - 2).toWellFormed()} …`);

/** Returns whether an answer leads to another one. */
export const hasNextAnswer = (send: SendRow, leg: number, answer: string): boolean =>
  send.mode === 'ping-pong' && leg < send.maxTurns && answer.trim() !== '' && !answer.includes(skipMarker);

/** Returns the chat that gets the result of a message; undefined for the inbox. */
export const chatOf = ({ chatJson }: Pick<SendRow, 'chatJson'>): ChatEndpoint | undefined =>
  chatJson === null ? undefined : StoredChatEndpoint().parse(parseJson(chatJson, { maxDepth: 2 }));

/** Addresses a message about the end of an exchange to its chat, if there is one. */
const addressed = (message: InboxMessage, send: SendRow, address: EndpointsApi['address']): InboxMessage => {
  const chat = chatOf(send);
  if (chat === undefined) return message;
  const { byAgent, fromAgentId, fromRef, principalId } = send;
  // The chat is that of the sender: the message ends with its conversation and agent, not with those that answered.
  const ofSender = byAgent && fromAgentId !== null ? { agentId: fromAgentId, conversationRef: fromRef, principalId } : {};
  return address({ ...message, ...ofSender }, chat);
};

/**
 * Returns the message with the last answer: for the chat of an agent that sent the message, otherwise for the owner of the target conversation,
 * unless the owner itself waits for it. Text of a sub-agent is only for the requester of its run.
 */
export function resultMessage(
  send: SendRow,
  answer: string,
  { isAwaited, atMs }: { readonly isAwaited: boolean; readonly atMs: number },
  address: EndpointsApi['address'],
): InboxMessage | undefined {
  const isOwners = send.toPrincipalId === send.principalId;
  if ((isAwaited && isOwners) || answer.trim() === '' || answer.includes(skipMarker) || isSubAgentKey(send.toSessionKey)) return undefined;
  const message: InboxMessage = {
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
  return addressed(message, send, address);
}

/** Returns the message for the sender of an accepted message that got no answer while nobody waited. */
export function failedNote(send: SendRow, why: string, atMs: number, address: EndpointsApi['address']): InboxMessage {
  const text = `A message to ${send.toSessionKey} (agent ${send.toAgentId}) was not answered: ${why}. Next step: send it again.`;
  const note: InboxMessage = {
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
  // The sender of a token's message is not in the chat.
  return send.byAgent ? addressed(note, send, address) : note;
}

/** Conversations of sub-agents have reserved keys that no caller can create: they name the run. */
export const isSubAgentKey = (sessionKey: string): boolean => sessionKey.startsWith('subagent:gateway:');

export const callOf = (send: SendRow, identity: CallContext['identity'], requestId: string, signal: AbortSignal): CallContext => ({
  identity,
  traceId: send.traceId,
  requestId,
  signal,
  transport: 'process',
});
