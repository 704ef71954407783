import { randomUUID } from 'node:crypto';
import * as z from 'zod';

/** The reference's side of the wire: strict validation, ids, chunk frames with a prefix built once per completion. */
const Block = z.strictObject({ type: z.literal('text'), text: z.string() });
const Message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.union([z.string(), z.array(Block)]) });
const Body = z.strictObject({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: z.boolean().default(false),
  temperature: z.number().min(0).max(2).optional(),
  max_tokens: z.int().positive().optional(),
  stream_options: z.strictObject({ include_usage: z.boolean().optional() }).optional(),
});

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly stream: boolean;
  readonly temperature: number | undefined;
  readonly max_tokens: number | undefined;
  readonly includeUsage: boolean;
}

export const errorBody = (message: string, type: string, param: string | null = null): object => ({ error: { message, type, param, code: null } });

export function parseBody(raw: unknown): { readonly body: ChatBody } | { readonly error: object } {
  const parsed = Body.safeParse(raw);
  if (!parsed.success)
    return {
      error: errorBody(parsed.error.issues[0]?.message ?? 'invalid', 'invalid_request_error', parsed.error.issues[0]?.path.join('.') ?? null),
    };
  const { model, stream, temperature, max_tokens, stream_options } = parsed.data;
  const messages = parsed.data.messages.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? content : content.map((block) => block.text).join('\n'),
  }));
  if (!messages.some((one) => one.role === 'user' && one.content.trim()))
    return { error: errorBody('no user message', 'invalid_request_error', 'messages') };
  return { body: { model, messages, stream, temperature, max_tokens, includeUsage: stream_options?.include_usage ?? false } };
}

export const newId = (): string => `chatcmpl-${randomUUID()}`;
const seconds = (): number => Math.floor(Date.now() / 1000);
const reason = (finish: string): string => (finish === 'length' ? 'length' : 'stop');

export function completion(id: string, model: string, content: string, finish: string, usage: Usage | undefined): object {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: reason(finish) }];
  return { id, object: 'chat.completion', created: seconds(), model, choices, usage };
}

export function framer(id: string, model: string) {
  const head = `data: {"id":"${id}","object":"chat.completion.chunk","created":${seconds()},"model":${JSON.stringify(model)},"choices":`;
  return {
    role: `${head}[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n`,
    delta: (text: string): string => `${head}[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`,
    finish: (finish: string): string => `${head}[{"index":0,"delta":{},"finish_reason":"${reason(finish)}"}]}\n\n`,
    usage: (usage: Usage): string => `${head}[],"usage":${JSON.stringify(usage)}}\n\n`,
    done: 'data: [DONE]\n\n',
  };
}
