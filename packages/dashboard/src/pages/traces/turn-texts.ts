import type { Client } from '@gatehouse/client';
import type { StoredMessage, TraceRecord } from '@gatehouse/contract';
import { allNodes, type TraceNode, turnOf } from './trace-rows.ts';

/** Texts of a node from the stored conversation. */
export interface Texts {
  readonly input: string | undefined;
  readonly output: string | undefined;
}

const pageSize = 200;
/** Pages that are read backward from the newest message. */
const maxPages = 10;

/** Returns the stored messages of a turn, which the caller may read; none of a turn that is not stored, or too far back. */
export async function loadTurn(client: Client, record: TraceRecord, signal: AbortSignal): Promise<readonly StoredMessage[]> {
  const { conversationRef } = record;
  if (conversationRef === undefined) return [];
  const found: StoredMessage[] = [];
  let end = (await client.call('session.history', { conversationRef, limit: 1 }, { signal })).total;
  for (let page = 0; page < maxPages && end > 0; page += 1) {
    const offset = Math.max(0, end - pageSize);
    const { messages } = await client.call('session.history', { conversationRef, offset, limit: end - offset }, { signal });
    found.unshift(...messages.filter(({ turnId }) => turnId === turnOf(record.id)));
    const oldest = messages[0];
    if (oldest === undefined || oldest.timestamp < record.startedAtMs) break;
    end = offset;
  }
  return found;
}

/** Finds the texts of a node among the messages of its turn; those of a model call only where each answer has one call. */
export function textsOf(node: TraceNode, roots: readonly TraceNode[], messages: readonly StoredMessage[]): Texts {
  const { step } = node;
  const answers = messages.filter(({ role }) => role === 'assistant');
  if (step === undefined)
    return { input: messages.find(({ role }) => role === 'user')?.content, output: answers.findLast(({ content }) => content !== '')?.content };
  if (step.kind === 'tool') {
    const callId = step.facts?.['callId'];
    return {
      input: messages.flatMap(({ toolCalls }) => toolCalls ?? []).find(({ id }) => id === callId)?.arguments,
      output: messages.find(({ role, toolCallId }) => role === 'tool' && toolCallId === callId)?.content,
    };
  }
  if (step.kind !== 'model') return { input: undefined, output: undefined };
  const turn = turnOf(node.record.id);
  const calls = allNodes(roots).filter(
    (one) => one.step?.kind === 'model' && one.step.outcome === 'ok' && one.step.facts?.['nested'] !== true && turnOf(one.record.id) === turn,
  );
  if (calls.length !== answers.length) return { input: undefined, output: undefined };
  const answer = answers[calls.findIndex(({ id }) => id === node.id)];
  if (answer === undefined) return { input: undefined, output: undefined };
  const asked = (answer.toolCalls ?? []).map(({ name, arguments: given }) => `→ ${name} ${given}`);
  return { input: undefined, output: [answer.content, ...asked].filter((part) => part !== '').join('\n') };
}
