import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { knownModel } from '../../../../llm/known-models.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { VideoConfig } from '../config.ts';
import type { Provider, VendorRow } from './entry.ts';
import { askProvider, bearer, readAnswer } from './request.ts';

export type VideoEntry = VideoConfig['providers'][number];

export interface Footage {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
  readonly prompt: string;
  readonly maxTokens: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Described {
  readonly text: string;
  /** Tokens that the provider counted; undefined when it did not. */
  readonly tokens?: { readonly input: number; readonly output: number } | undefined;
}

export interface VideoVendor extends VendorRow {
  /** US dollars per million tokens. */
  readonly priceOf: (model: string) => { readonly input: number; readonly output: number } | null;
  readonly describe: (provider: Provider<VideoEntry>, footage: Footage) => Promise<Described>;
}

const maxAnswerBytes = 4 * 1024 * 1024;
const count = z.int().min(0);
const GoogleAnswer = once(() =>
  z.object({
    candidates: z
      .array(z.object({ content: z.object({ parts: z.array(z.object({ text: z.string().optional() })).default([]) }).optional() }))
      .default([]),
    usageMetadata: z.object({ promptTokenCount: count.optional(), candidatesTokenCount: count.optional() }).optional(),
  }),
);
const ChatAnswer = once(() =>
  z.object({
    choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1),
    usage: z.object({ prompt_tokens: count, completion_tokens: count }).nullish(),
  }),
);

export const videoVendors: Readonly<Record<VideoEntry['type'], VideoVendor>> = {
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyEnv: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    model: 'gemini-2.5-flash',
    priceOf: (model) => knownModel('google', model)?.price ?? null,
    async describe(provider, { bytes, mimeType, prompt, maxTokens, ...bounds }) {
      const { body } = await askProvider(provider, {
        path: `/models/${encodeURIComponent(provider.model)}:generateContent`,
        headers: provider.key === undefined ? {} : { 'x-goog-api-key': provider.key },
        json: {
          contents: [{ parts: [{ inlineData: { mimeType, data: Buffer.from(bytes).toString('base64') } }, { text: prompt }] }],
          generationConfig: { maxOutputTokens: maxTokens },
        },
        maxBytes: maxAnswerBytes,
        ...bounds,
      });
      const { candidates, usageMetadata } = readAnswer(provider, body, GoogleAnswer());
      const text = (candidates[0]?.content?.parts ?? []).flatMap((part) => part.text ?? []).join('');
      const input = usageMetadata?.promptTokenCount;
      return answered(provider, text, input === undefined ? undefined : { input, output: usageMetadata?.candidatesTokenCount ?? 0 });
    },
  },
  'openai-compatible': {
    keyEnv: [],
    model: '',
    keyless: true,
    priceOf: () => null,
    async describe(provider, { bytes, mimeType, prompt, maxTokens, ...bounds }) {
      const url = `data:${mimeType};base64,${Buffer.from(bytes).toString('base64')}`;
      const { body } = await askProvider(provider, {
        path: '/chat/completions',
        headers: bearer(provider),
        json: {
          model: provider.model,
          max_tokens: maxTokens,
          messages: [
            {
              role: 'user',
              content: [
                { type: 'video_url', video_url: { url } },
                { type: 'text', text: prompt },
              ],
            },
          ],
        },
        maxBytes: maxAnswerBytes,
        ...bounds,
      });
      const { choices, usage } = readAnswer(provider, body, ChatAnswer());
      return answered(
        provider,
        choices[0]?.message.content ?? '',
        usage == null ? undefined : { input: usage.prompt_tokens, output: usage.completion_tokens },
      );
    },
  },
};

function answered({ name }: Provider, text: string, tokens: Described['tokens']): Described {
  if (text.trim() === '') throw new ModelError('bad_response', `${name} returned no description`);
  return { text: text.trim(), tokens };
}
