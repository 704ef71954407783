import type { ResponseRequest } from '@gatehouse/contract';

type Item = Readonly<Record<string, unknown>> & { readonly type: string; readonly id: string };

/** Returns the input of a response as stored and listed: messages in their long form, each item with an id. */
export function inputItems(input: ResponseRequest['input'], responseId: string): Item[] {
  const items = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input;
  return items.map((item, index): Item => {
    const type = item.type ?? 'message';
    const id = `${type === 'message' ? 'msg' : 'in'}${responseId.slice('resp'.length)}_in${index}`;
    const named = { ...item, type, id: item.id ?? id };
    if (!('role' in item)) return named;
    const { role, content } = item;
    const text = typeof content === 'string' ? [textBlock(role, content)] : content;
    return { ...named, status: item.status ?? 'completed', content: text };
  });
}

function textBlock(role: string, text: string): object {
  return role === 'assistant' ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text };
}
