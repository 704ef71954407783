import type { Client } from '@gatehouse/client';
import { isRecord, type JsonRecord, RpcFailure, toRecord } from './peer.ts';

export interface Prompt {
  readonly text: string;
  readonly attachments: readonly { readonly mediaId: string }[];
}

const invalidParams = -32_602;

/** Turns the blocks of a prompt into a message: text and files of the editor as text, pictures and recordings as attachments. */
export async function readPrompt(client: Client, blocks: unknown): Promise<Prompt> {
  if (!Array.isArray(blocks) || !blocks.every(isRecord)) throw new RpcFailure(invalidParams, 'prompt: expected a list of content blocks');
  const texts: string[] = [];
  const attachments: { mediaId: string }[] = [];
  for (const block of blocks) {
    const attached = binaryOf(block);
    if (attached === undefined) texts.push(textOf(block));
    else {
      const { data, mimeType, name } = attached;
      const { mediaId } = await client.upload(new Uint8Array(Buffer.from(data, 'base64')), { contentType: mimeType, fileName: name });
      attachments.push({ mediaId });
    }
  }
  const text = texts.join('').trim();
  if (text === '' && attachments.length === 0) throw new RpcFailure(invalidParams, 'prompt: the message is empty');
  return { text: text === '' ? 'See the attachment.' : text, attachments };
}

function binaryOf(block: JsonRecord): { readonly data: string; readonly mimeType: string; readonly name: string | undefined } | undefined {
  const { type } = block;
  const resource = toRecord(block['resource']);
  const data = type === 'resource' ? resource['blob'] : block['data'];
  if (typeof data !== 'string' || (type !== 'image' && type !== 'audio' && type !== 'resource')) return undefined;
  const mimeType = (type === 'resource' ? resource['mimeType'] : block['mimeType']) ?? 'application/octet-stream';
  const uri = type === 'resource' ? resource['uri'] : block['uri'];
  return { data, mimeType: String(mimeType), name: typeof uri === 'string' ? uri.split('/').at(-1) : undefined };
}

function textOf(block: JsonRecord): string {
  const resource = toRecord(block['resource']);
  switch (block['type']) {
    case 'text':
      return String(block['text'] ?? '');
    case 'resource_link':
      return `[${String(block['name'] ?? 'file')}](${String(block['uri'] ?? '')})`;
    case 'resource':
      return `\n\n${String(resource['uri'] ?? 'File')}:\n\n${fenced(String(resource['text'] ?? ''))}\n\n`;
    default:
      throw new RpcFailure(invalidParams, `prompt: content of type ${String(block['type'])} is not supported`);
  }
}

/** Fences a file with more backticks than its longest run of them. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
