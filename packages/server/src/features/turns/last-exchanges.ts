import type { PreparedContext } from '../context/api.ts';

/** The end of what was said: as many questions with all that followed each. What was found about the question goes with the rest. */
export function lastExchanges({ recalled: _, messages, attached, ...rest }: PreparedContext, exchanges: number): PreparedContext {
  let from = messages.length;
  for (let left = exchanges; left > 0; left -= 1) {
    const before = messages.findLastIndex((message, index) => index < from && message.role === 'user');
    if (before === -1) break;
    from = before;
  }
  return {
    ...rest,
    messages: messages.slice(from),
    attached: attached.flatMap(({ index, ...past }) => (index < from ? [] : [{ ...past, index: index - from }])),
  };
}
