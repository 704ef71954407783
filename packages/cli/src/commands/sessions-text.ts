import type { Result } from '@gatehouse/contract';
import type { Paint } from '../render/paint.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderTable, renderTime } from '../render/table.ts';

/** Maximum characters of a title in the list. */
const titleLength = 50;

export function sessionTable({ sessions, total, offset }: Result<'session.list'>): string {
  if (sessions.length === 0) return total === 0 ? 'No conversations.' : `${total} conversations, none after ${offset}.`;
  const table = renderTable(
    ['Title', 'Agent', 'Kind', 'Messages', 'Last used', 'Reference', 'Session'],
    sessions.map((one) => [
      shorten(one.title ?? '-', titleLength),
      one.agentId,
      one.kind,
      one.messageCount,
      renderTime(one.updatedAt),
      one.conversationRef,
      one.sessionKey,
    ]),
  );
  const rest = offset + sessions.length < total ? `; --offset ${offset + sessions.length} shows the next` : '';
  return sessions.length === total ? table : `${table}\n${offset + 1} to ${offset + sessions.length} of ${total}${rest}`;
}

/** Formats messages with indented text, so that no line looks like the head of a message. */
export function transcript({ session, messages, total }: Result<'session.history'>, paint: Paint): string {
  const head = `${plainText(session.sessionKey)} of ${session.agentId}, ${total} messages, ${session.totalTokens} tokens`;
  const parts = messages.map(({ seq, role, timestamp, content, toolName, toolCalls }) => {
    const who = toolName === undefined ? role : `${role} ${plainText(toolName)}`;
    const lines = content === '' ? [] : content.split(/\r\n|\n|\r/);
    const calls = (toolCalls ?? []).map((call) => `→ ${call.name} ${call.arguments}`);
    return [
      paint('cyan', `${seq}  ${who}`) + paint('dim', `  ${renderTime(timestamp)}`),
      ...[...lines, ...calls].map((line) => `  ${plainText(line)}`),
    ].join('\n');
  });
  return [head, ...parts].join('\n\n');
}

/** Formats each match with its position; highlights the terms on a terminal. */
export function foundText(found: Result<'session.search'>, paint: Paint): string {
  if (found.mode === 'recent') throw new Error('the daemon listed conversations instead of searching');
  const { results, total, truncated } = found;
  if (results.length === 0) return 'No message contains all terms.';
  const parts = results.map(({ conversationRef, sessionKey, agentId, seq, role, timestamp, snippet, marks }) => {
    const head = `${plainText(sessionKey)} of ${agentId}, message ${seq} (${role})`;
    return `${paint('cyan', head)}${paint('dim', `  ${renderTime(timestamp)}  ${conversationRef}`)}\n  ${markedText(snippet, marks, paint)}`;
  });
  const more = total > results.length || truncated ? `\n\n${results.length} of ${truncated ? 'more than ' : ''}${total}` : '';
  return `${parts.join('\n\n')}${more}`;
}

function markedText(snippet: string, marks: readonly { readonly start: number; readonly end: number }[], paint: Paint): string {
  let at = 0;
  let text = '';
  for (const { start, end } of marks) {
    text += plainText(snippet.slice(at, start)) + paint('yellow', plainText(snippet.slice(start, end)));
    at = end;
  }
  return text + plainText(snippet.slice(at));
}

export function compactedText({
  sessionKey,
  compacted,
  messageCount,
  tokensBefore,
  tokensAfter,
  summaries,
  method,
}: Result<'session.compact'>): string {
  const name = plainText(sessionKey);
  if (!compacted) return `Nothing to compact in ${name}: the model reads its ${messageCount} messages in full.`;
  const how = method === 'truncated' ? 'no model returned a summary, so messages were truncated' : `${summaries} summaries created`;
  return `Compacted ${name}: the model reads ${tokensAfter} tokens instead of ${tokensBefore}; ${how}.`;
}

export function erasedText(done: Result<'session.reset_conversation'>): string {
  const counts: readonly (readonly [value: number | undefined, what: string])[] = [
    [done.messagesDeleted, 'messages'],
    [done.summariesDeleted, 'summaries'],
    [done.memoriesDeleted, 'memories'],
    [done.derivedDeleted, 'derived memories'],
  ];
  const erased = counts.flatMap(([value, what]) => (value === undefined ? [] : [`${value} ${what}`]));
  const unlinked = done.derivedUnlinked ?? 0;
  return `Erased ${erased.join(', ')}${unlinked > 0 ? `; ${unlinked} derived memories kept without this source` : ''}.`;
}
