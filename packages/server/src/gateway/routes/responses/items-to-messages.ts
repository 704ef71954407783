import type { ResponseInputItem, ResponseOutputItem } from '@gatehouse/contract';
import type { CompletionMessage } from '../../../features/conversations/turns/api.ts';
import type { ModelPart } from '../../../llm/model.ts';
import { filePart, imagePart, resultFile, toolMessage, userMessage } from '../v1-parts.ts';

import { decodeCompaction } from './compaction.ts';
import { offeredName } from './namespaces.ts';

type Assistant = Extract<CompletionMessage, { role: 'assistant' }>;

/** Finds an item of a stored response; `param` names the reference in errors. */
export type FindItem = (id: string, param: string) => Promise<ResponseOutputItem>;

/** Converts the input to messages; calls are merged into the assistant's message that they belong to. */
export async function toMessages(input: string | readonly ResponseInputItem[], findItem: FindItem): Promise<CompletionMessage[]> {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  const messages: CompletionMessage[] = [];
  let answer: Assistant[] = [];
  /** Belongs to the next item. */
  let reasoning = '';
  const closeAnswer = (): void => {
    if (answer.length > 0) messages.push(whole(answer));
    answer = [];
  };
  for (const [index, item] of input.entries()) {
    const param = `input.${index}`;
    const found = item.type === 'item_reference' ? await findItem(item.id, param) : item;
    if (found.type === 'reasoning') {
      reasoning = [reasoning, reasoningOf(found)].filter((text) => text !== '').join('\n');
      continue;
    }
    const plain = toMessage(found, param);
    const message = plain.role === 'assistant' && reasoning !== '' ? { ...plain, reasoning } : plain;
    reasoning = '';
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
    return { role: 'assistant', content: '', toolCalls: [{ id: item.call_id, name: offeredName(item), arguments: item.arguments }] };
  if (item.type === 'function_call_output')
    return toolMessage(item.call_id, typeof item.output === 'string' ? [textPart(item.output)] : item.output.map(resultPart));
  if (item.type === 'compaction') return { role: 'assistant', content: decodeCompaction(item.encrypted_content, `${param}.encrypted_content`) };
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

type ResultBlock = Exclude<Extract<ResponseInputItem, { type: 'function_call_output' }>['output'], string>[number];

function resultPart(block: ResultBlock): ModelPart {
  if (block.type === 'input_text' || block.type === 'output_text') return textPart(block.text);
  if (block.type === 'input_file') return resultFile(block.file_data, block.filename);
  return block.image_url == null ? textPart('[image left out: it was not part of the request]') : imagePart(block.image_url, block.detail);
}

const textPart = (text: string): ModelPart => ({ type: 'text', text });

/** Returns the text itself if present, else its summary. */
function reasoningOf({ content, summary }: Extract<ResponseInputItem, { type: 'reasoning' }>): string {
  const texts = (blocks: typeof content) => (blocks ?? []).flatMap(({ text }) => (text == null || text === '' ? [] : [text])).join('\n');
  const said = texts(content);
  return said === '' ? texts(summary) : said;
}

function joined(blocks: readonly ({ readonly text: string } | { readonly refusal: string })[]): string {
  return blocks.map((block) => ('text' in block ? block.text : block.refusal)).join('\n');
}

/** Separate texts stay separate messages; of two items that form one answer, one is a call. */
function belongsTo(answer: readonly Assistant[], { toolCalls }: Assistant): boolean {
  return answer.length > 1 || (toolCalls ?? answer[0]?.toolCalls) !== undefined;
}

/** Providers accept the text and the calls of one answer as one message only. */
function whole(answer: readonly Assistant[]): Assistant {
  const [only] = answer;
  if (only !== undefined && answer.length === 1) return only;
  const reasoning = answer.flatMap((message) => message.reasoning ?? []).join('\n');
  return {
    role: 'assistant',
    content: answer.flatMap(({ content }) => (content === '' ? [] : [content])).join('\n'),
    ...(reasoning !== '' && { reasoning }),
    toolCalls: answer.flatMap(({ toolCalls = [] }) => toolCalls),
  };
}
