import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { TranscriptionConfig } from '../config.ts';
import type { Provider, VendorRow } from './entry.ts';
import { askProvider, bearer, multipart, readAnswer } from './request.ts';

export type TranscriptionEntry = TranscriptionConfig['providers'][number];

export interface Recording {
  readonly bytes: Uint8Array;
  /** Type that the bytes show. */
  readonly mimeType: string;
  readonly extension: string;
  readonly language: string | undefined;
  readonly boundary: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Transcript {
  readonly text: string;
  readonly language?: string | undefined;
  readonly durationMs?: number | undefined;
}

export interface TranscriptionVendor extends VendorRow {
  /** US dollars per minute, by model. */
  readonly prices: Readonly<Record<string, number>>;
  /** The least that a request is billed for. */
  readonly leastSeconds?: number;
  readonly transcribe: (provider: Provider<TranscriptionEntry>, recording: Recording) => Promise<Transcript>;
}

const maxAnswerBytes = 4 * 1024 * 1024;
const OpenAiAnswer = once(() => z.object({ text: z.string(), language: z.string().nullish(), duration: z.coerce.number().min(0).nullish() }));
const DeepgramAnswer = once(() =>
  z.object({
    metadata: z.object({ duration: z.number().min(0).optional() }).optional(),
    results: z.object({
      channels: z
        .array(z.object({ detected_language: z.string().optional(), alternatives: z.array(z.object({ transcript: z.string() })).min(1) }))
        .min(1),
    }),
  }),
);

async function transcribeByForm(provider: Provider<TranscriptionEntry>, recording: Recording): Promise<Transcript> {
  const { bytes, mimeType, extension, language, boundary, timeoutMs, signal } = recording;
  // Newer models of OpenAI answer in the short form only.
  const format = provider.model.startsWith('gpt-') ? 'json' : 'verbose_json';
  const form = multipart(boundary, { model: provider.model, response_format: format, language: language?.split('-')[0] }, [
    { name: 'file', fileName: `audio.${extension}`, contentType: mimeType, bytes },
  ]);
  const { body } = await askProvider(provider, {
    path: '/audio/transcriptions',
    headers: bearer(provider),
    form,
    maxBytes: maxAnswerBytes,
    timeoutMs,
    signal,
  });
  const answer = readAnswer(provider, body, OpenAiAnswer());
  return {
    text: answer.text.trim(),
    language: answer.language ?? undefined,
    durationMs: answer.duration == null ? undefined : Math.round(answer.duration * 1000),
  };
}

async function transcribeByDeepgram(provider: Provider<TranscriptionEntry>, recording: Recording): Promise<Transcript> {
  const { bytes, mimeType, language, timeoutMs, signal } = recording;
  const query = new URLSearchParams({
    model: provider.model,
    smart_format: 'true',
    ...(language === undefined ? { detect_language: 'true' } : { language }),
  });
  const { body } = await askProvider(provider, {
    path: `/listen?${query.toString()}`,
    headers: { 'content-type': mimeType, ...(provider.key !== undefined && { authorization: `Token ${provider.key}` }) },
    body: bytes,
    maxBytes: maxAnswerBytes,
    timeoutMs,
    signal,
  });
  const { metadata, results } = readAnswer(provider, body, DeepgramAnswer());
  const [channel] = results.channels;
  const seconds = metadata?.duration;
  return {
    text: channel?.alternatives[0]?.transcript.trim() ?? '',
    language: channel?.detected_language ?? language,
    durationMs: seconds === undefined ? undefined : Math.round(seconds * 1000),
  };
}

/** Prices from general knowledge, not compared with the price lists of the vendors; an entry of the configuration replaces them. */
export const transcriptionVendors: Readonly<Record<TranscriptionEntry['type'], TranscriptionVendor>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: ['OPENAI_API_KEY'],
    model: 'gpt-4o-mini-transcribe',
    prices: { 'gpt-4o-mini-transcribe': 0.003, 'gpt-4o-transcribe': 0.006, 'whisper-1': 0.006 },
    transcribe: transcribeByForm,
  },
  groq: {
    baseUrl: 'https://api.groq.com/openai/v1',
    keyEnv: ['GROQ_API_KEY'],
    model: 'whisper-large-v3-turbo',
    prices: { 'whisper-large-v3-turbo': 0.04 / 60, 'whisper-large-v3': 0.111 / 60 },
    leastSeconds: 10,
    transcribe: transcribeByForm,
  },
  deepgram: {
    baseUrl: 'https://api.deepgram.com/v1',
    keyEnv: ['DEEPGRAM_API_KEY'],
    model: 'nova-3',
    prices: { 'nova-3': 0.0052, 'nova-2': 0.0043 },
    transcribe: transcribeByDeepgram,
  },
  'openai-compatible': { keyEnv: [], model: '', prices: {}, keyless: true, transcribe: transcribeByForm },
};
