import type { ModelMessage } from '../../../../llm/model.ts';

/** Inserts a block before the last message if it is the user's; when tool results come last, the question was already answered. */
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
