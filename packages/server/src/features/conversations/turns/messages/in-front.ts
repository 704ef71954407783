import type { ModelMessage } from '../../../../llm/model.ts';

/** The messages with a block before the last one, when that is the user's: where results of tools come last, the question was answered before. */
export function putInFront(messages: readonly ModelMessage[], block: string): readonly ModelMessage[] {
  const last = messages.at(-1);
  if (last?.role !== 'user') return messages;
  const content = `${block}\n\n${last.content}`;
  const { parts } = last;
  return [
    ...messages.slice(0, -1),
    parts === undefined ? { ...last, content } : { ...last, content, parts: [{ type: 'text', text: block }, ...parts] },
  ];
}
