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
  let answer: Assistant[] = [];
  const closeAnswer = (): void => {
    if (answer.length > 0) messages.push(whole(answer));
    answer = [];
  };
  for (const [index, item] of input.entries()) {
    const param = `input.${index}`;
    const found = item.type === 'item_reference' ? await findItem(item.id, param) : item;
    // What is accepted of reasoning says nothing.
    if (found.type === 'reasoning') continue;
    const message = toMessage(found, param);
    if (message.role !== 'assistant' || !belongsTo(answer, message)) closeAnswer();
    if (message.role === 'assistant') answer.push(message);
    else messages.push(message);
  }
  closeAnswer();
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

/** Texts alone stay messages of their own; of two pieces that are one answer, one is a call. */
function belongsTo(answer: readonly Assistant[], { toolCalls }: Assistant): boolean {
  return answer.length > 1 || (toolCalls ?? answer[0]?.toolCalls) !== undefined;
}

/** Providers take the text and the calls of one answer as one message only. */
function whole(answer: readonly Assistant[]): Assistant {
  const [only] = answer;
  if (only !== undefined && answer.length === 1) return only;
  return {
    role: 'assistant',
    content: answer.flatMap(({ content }) => (content === '' ? [] : [content])).join('\n'),
    toolCalls: answer.flatMap(({ toolCalls = [] }) => toolCalls),
  };
}
