import type { ResponseInputItem, ResponseOutputItem } from '@gatehouse/contract';
import type { CompletionMessage } from '../../../features/turns/api.ts';
import type { ModelPart } from '../../../llm/model.ts';
import { filePart, imagePart, userMessage } from '../v1-parts.ts';

type Assistant = Extract<CompletionMessage, { role: 'assistant' }>;

/** Looks an item of a stored response up; `param` names the reference in errors. */
export type FindItem = (id: string, param: string) => Promise<ResponseOutputItem>;

/** The input as messages: calls join the assistant's message that they belong to. */
export async function toMessages(input: string | readonly ResponseInputItem[], findItem: FindItem): Promise<CompletionMessage[]> {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  const messages: CompletionMessage[] = [];
  for (const [index, item] of input.entries()) {
    const param = `input.${index}`;
    const found = item.type === 'item_reference' ? await findItem(item.id, param) : item;
    // What is accepted of reasoning says nothing.
    if (found.type !== 'reasoning') add(messages, toMessage(found, param));
  }
  return messages;
}

type Item = Exclude<ResponseInputItem, { type: 'item_reference' | 'reasoning' }> | ResponseOutputItem;

function toMessage(item: Item, param: string): CompletionMessage {
  if (item.type === 'function_call')
    return { role: 'assistant', content: '', toolCalls: [{ id: item.call_id, name: item.name, arguments: item.arguments }] };
  if (item.type === 'function_call_output')
    return { role: 'tool', content: typeof item.output === 'string' ? item.output : joined(item.output), toolCallId: item.call_id };
  const { role, content } = item;
  if (typeof content === 'string') return { role, content };
  if (role !== 'user') return { role, content: joined(content) };
  return userMessage(
    content.map((block, index): ModelPart => {
      if (block.type === 'input_text') return { type: 'text', text: block.text };
      if (block.type === 'input_image') return imagePart(block.image_url, block.detail);
      return filePart(block.file_data, block.filename, `${param}.content.${index}.file_data`);
    }),
  );
}

function joined(blocks: readonly ({ readonly text: string } | { readonly refusal: string })[]): string {
  return blocks.map((block) => ('text' in block ? block.text : block.refusal)).join('\n');
}

function add(messages: CompletionMessage[], message: CompletionMessage): void {
  const last = messages.at(-1);
  if (message.role === 'assistant' && last?.role === 'assistant' && (message.toolCalls ?? last.toolCalls) !== undefined)
    messages[messages.length - 1] = merged(last, message);
  else messages.push(message);
}

/** Providers take the text and the calls of one answer as one message only. */
function merged(first: Assistant, second: Assistant): Assistant {
  return {
    role: 'assistant',
    content: [first.content, second.content].filter((text) => text !== '').join('\n'),
    toolCalls: [...(first.toolCalls ?? []), ...(second.toolCalls ?? [])],
  };
}
