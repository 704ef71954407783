import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ToolResult } from '../../../../runtime/tool.ts';
import { cleanText } from './clean-text.ts';

/** Read leniently: an item of an unknown kind is reported, not refused. */
export const CallResult = once(() =>
  z.looseObject({
    content: z.array(z.looseObject({ type: z.string() })).optional(),
    structuredContent: z.unknown().optional(),
    isError: z.boolean().optional(),
  }),
);
export type CallResult = z.output<ReturnType<typeof CallResult>>;

const maxItems = 1000;
const maxCharacters = 1_048_576;

const TextItem = once(() => z.object({ text: z.string() }));
const DataItem = once(() => z.object({ data: z.string(), mimeType: z.string().optional() }));
const LinkItem = once(() =>
  z.object({ uri: z.string(), name: z.string().optional(), description: z.string().optional(), mimeType: z.string().optional() }),
);
const ResourceItem = once(() =>
  z.object({
    resource: z.object({ uri: z.string(), mimeType: z.string().optional(), text: z.string().optional(), blob: z.string().optional() }),
  }),
);

/** Converts the result of a server to text from outside. Binary content is described in a line. */
export function renderResult(result: CallResult, server: string): ToolResult {
  const items = result.content ?? [];
  const lines = items.slice(0, maxItems).map(renderItem);
  if (items.length > maxItems) lines.push(`[${items.length - maxItems} more items are not shown]`);
  const structured = result.structuredContent === undefined ? undefined : printJson(result.structuredContent);
  if (structured !== undefined) {
    const packed = pack(structured);
    // Servers repeat it as text for older clients.
    if (!items.slice(0, maxItems).some((item) => repeats(item, packed))) lines.push(structured);
  }
  const text = cleanText(lines.join('\n'));
  const content = text.length > maxCharacters ? `${text.slice(0, maxCharacters).toWellFormed()}\n[the rest of the result is omitted]` : text;
  return {
    content: content === '' ? '(no content)' : content,
    ...(result.isError === true && { isError: true }),
    outside: { source: `mcp server ${server}` },
  };
}

function renderItem(item: { readonly type: string }): string {
  const text = TextItem().safeParse(item);
  if (item.type === 'text' && text.success) return text.data.text;
  const data = DataItem().safeParse(item);
  if ((item.type === 'image' || item.type === 'audio') && data.success)
    return `[${item.type}, ${label(data.data.mimeType)}, ${bytesOf(data.data.data)} bytes: not shown]`;
  const link = LinkItem().safeParse(item);
  if (item.type === 'resource_link' && link.success) {
    const { uri, name, description } = link.data;
    return `[resource ${label(uri)}${name === undefined ? '' : `: ${label(name)}`}${description === undefined ? '' : ` (${label(description)})`}]`;
  }
  const resource = ResourceItem().safeParse(item);
  if (item.type === 'resource' && resource.success) {
    const { uri, mimeType, text: body, blob } = resource.data.resource;
    if (body !== undefined) return `[resource ${label(uri)}]\n${body}`;
    return `[resource ${label(uri)}, ${label(mimeType)}, ${bytesOf(blob ?? '')} bytes: not shown]`;
  }
  return `[${label(item.type)}: not shown]`;
}

function label(text: string | undefined): string {
  return (text ?? 'unknown type').slice(0, 500).replaceAll(/\s+/g, ' ');
}

function bytesOf(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}

const pack = (text: string): string => text.replaceAll(/\s+/g, '');

function repeats(item: { readonly type: string }, packed: string): boolean {
  const text = TextItem().safeParse(item);
  return text.success && pack(text.data.text) === packed;
}

/** A value that is nested too deeply for the printer is replaced by a note. */
function printJson(value: unknown): string {
  try {
    return JSON.stringify(value, undefined, 1);
  } catch {
    return '[structured content: not shown]';
  }
}
