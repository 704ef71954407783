import { holdsTaint } from '../../../../runtime/fence.ts';
import type { PreparedContext } from '../../context/api.ts';

/** Returns the last exchanges, without notes on earlier messages and recalled excerpts. */
export function lastExchanges({ recalled: _, messages, attached, hasNotes, ...rest }: PreparedContext, exchanges: number): PreparedContext {
  const first = hasNotes ? 1 : 0;
  let from = messages.length;
  for (let left = exchanges; left > 0; left -= 1) {
    const before = messages.findLastIndex((message, index) => index < from && message.role === 'user');
    if (before < first) break;
    from = before;
  }
  return {
    ...rest,
    hasNotes: false,
    // The remaining messages may derive from the omitted ones.
    tainted: rest.tainted || attached.length > 0 || messages.slice(0, from).some(({ content }) => holdsTaint(content)),
    messages: messages.slice(from),
    attached: attached.flatMap(({ index, ...past }) => (index < from ? [] : [{ ...past, index: index - from }])),
  };
}
