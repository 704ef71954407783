import { Api, InputFile } from 'grammy';
import type { ApiMethods, Opts } from 'grammy/types';
import * as z from 'zod';
import { parseJson } from '../../kernel/json.ts';
import { createFetch, RequestFailed } from '../http.ts';
import type { WireClock } from '../port.ts';

/** Seconds that a poll waits for messages. */
export const pollSeconds = 50;
/** Time for the answer of a poll. */
export const pollMs = pollSeconds * 1_000 + 15_000;
const callMs = 30_000;
const uploadMs = 300_000;
/** A hundred messages, each with the one that it answers. */
const maxPollBytes = 16_777_216;
const maxCallBytes = 1_048_576;
const maxDescription = 300;

/** `<bot id>:<secret>`; it becomes part of addresses. */
const tokenPattern = /^\d{1,20}:[\w-]{1,128}$/;

export interface Access {
  readonly token: string;
  readonly apiUrl: string;
  readonly clock: WireClock;
}

/** The methods of the library with the signals of the platform, which it types like those of a package. */
export type BotApi = {
  readonly [Method in keyof ApiMethods]: Parameters<ApiMethods[Method]>[0] extends undefined
    ? (signal: AbortSignal) => Promise<ReturnType<ApiMethods[Method]>>
    : (payload: Opts<Method>, signal: AbortSignal) => Promise<ReturnType<ApiMethods[Method]>>;
};

const Refusal = z.object({
  ok: z.literal(false),
  error_code: z.int(),
  description: z.string().default(''),
  parameters: z.object({ retry_after: z.number().min(0).optional(), migrate_to_chat_id: z.int().optional() }).optional(),
});
const Answer = z.discriminatedUnion('ok', [z.object({ ok: z.literal(true), result: z.unknown() }), Refusal]);

/**
 * Returns the Bot API with our requests instead of those of the library: with the injected clock, and `RequestFailed` as the evidence of what was
 * sent. A complete answer that is a refusal is a `GrammyError`.
 */
export function createApi({ token, apiUrl, clock }: Access): BotApi {
  const poll = createFetch({ clock, timeoutMs: pollMs, maxBytes: maxPollBytes });
  const call = createFetch({ clock, timeoutMs: callMs, maxBytes: maxCallBytes });
  const upload = createFetch({ clock, timeoutMs: uploadMs, maxBytes: maxCallBytes });
  const api = new Api(token);
  api.config.use(async (_library, method, payload, signal) => {
    if (!tokenPattern.test(token)) return { ok: false, error_code: 401, description: 'The token is not of the form 123456:ABC…', parameters: {} };
    const form = await formOf(payload);
    const send = form !== undefined ? upload : method === 'getUpdates' ? poll : call;
    const response = await send(`${rootOf(apiUrl)}/bot${token}/${method}`, {
      method: 'POST',
      ...(form === undefined ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(payload) } : { body: form }),
      ...(signal !== undefined && { signal: signal as unknown as AbortSignal }),
    });
    const answer = answerOf(response.status, await response.text());
    if (answer.ok) return { ok: true, result: answer.result as never };
    return {
      ...answer,
      description: answer.description.replaceAll(token, '…').slice(0, maxDescription),
      parameters: { ...answer.parameters } as object,
    };
  });
  return api.raw as unknown as BotApi;
}

export const rootOf = (apiUrl: string): string => apiUrl.replace(/\/+$/, '');

/** Returns the fields of a call with a file; undefined for one without. */
async function formOf(payload: object): Promise<FormData | undefined> {
  const fields = Object.entries(payload).filter(([, value]) => value !== undefined);
  if (!fields.some(([, value]) => value instanceof InputFile)) return undefined;
  const form = new FormData();
  for (const [name, value] of fields)
    if (value instanceof InputFile) form.append(name, await blobOf(value), value.filename ?? name);
    else form.append(name, typeof value === 'string' ? value : JSON.stringify(value));
  return form;
}

async function blobOf(file: InputFile): Promise<Blob> {
  const bytes = await file.toRaw();
  if (!(bytes instanceof Uint8Array)) throw new TypeError('expected the bytes of a file');
  return new Blob([new Uint8Array(bytes)]);
}

/** A proxy in between may answer in its own words: then the status alone says what it is. */
function answerOf(status: number, text: string): z.output<typeof Answer> {
  const parsed = Answer.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  if (status >= 200 && status < 400) throw new RequestFailed(`The answer (HTTP ${status}) is not one of the Bot API`, true, undefined);
  return { ok: false, error_code: status, description: `HTTP ${status}` };
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
