import { once, speechFormats } from '@gatehouse/contract';
import * as z from 'zod';

const vendorKeys = {
  apiKey: z
    .string()
    .min(1)
    .optional()
    .meta({ secret: true })
    .describe(
      '"${NAME}" takes it from the environment. Without it: the key of the first entry of `providers` of this type, then that of the environment.',
    ),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Another address of the API, up to and with /v1 where the vendor has it. Its host is reached even when it is not public.'),
  model: z.string().min(1).max(256).optional().describe("The vendor's usual model otherwise."),
};
const price = (unit: string) =>
  z
    .number()
    .min(0)
    .max(100_000)
    .optional()
    .describe(`US dollars per ${unit}; the built-in price of known models otherwise. A cap in money refuses what has no price.`);

/** One entry of `media.transcription.providers`. */
export const TranscriptionProvider = once(() =>
  z.strictObject({
    type: z.enum(['openai', 'groq', 'deepgram', 'openai-compatible']).describe('Which wire; openai-compatible needs baseUrl and model.'),
    ...vendorKeys,
    pricePerMinute: price('minute of speech'),
  }),
);
/** One entry of `tts.providers`. */
export const SpeechProvider = once(() =>
  z.strictObject({
    type: z
      .enum(['openai', 'elevenlabs', 'espeak', 'openai-compatible'])
      .describe(
        'Which wire; openai-compatible needs baseUrl and model; espeak runs the program espeak-ng of this machine in the jail, without a key.',
      ),
    ...vendorKeys,
    voice: z.string().min(1).max(100).optional().describe('Voice of this provider; `tts.voice` otherwise.'),
    pricePerMillionCharacters: price('million characters'),
  }),
);
/** One entry of `imageGen.providers`. */
export const ImageProvider = once(() =>
  z.strictObject({
    type: z.enum(['openai', 'google', 'fal', 'openai-compatible']).describe('Which wire; openai-compatible needs baseUrl and model.'),
    ...vendorKeys,
    pricePerImage: price('image'),
  }),
);
/** One entry of `media.video.providers`. */
export const VideoProvider = once(() =>
  z.strictObject({
    type: z.enum(['google', 'openai-compatible']).describe('Which wire; openai-compatible (`video_url` parts) needs baseUrl and model.'),
    ...vendorKeys,
    cost: z
      .strictObject({ input: z.number().min(0), output: z.number().min(0) })
      .optional()
      .describe('US dollars per million tokens; the built-in price of known models otherwise.'),
  }),
);

const maxPerHour = (usual: number, what: string) => z.int().min(1).max(100_000).default(usual).describe(`${what} in an hour.`);
const ordered = 'The first is asked first, the next ones when it fails. Off while there are none.';
const timeoutMs = (ms: number) => z.int().min(1000).max(600_000).default(ms).describe('Deadline of one request.');

/** Section `media.transcription`. */
export const TranscriptionConfig = once(() =>
  z.strictObject({
    providers: z.array(TranscriptionProvider().superRefine(needsAddress)).max(8).default([]).describe(ordered),
    maxBytes: z.int().min(1024).max(26_214_400).default(26_214_400).describe('Largest file.'),
    maxPerHour: maxPerHour(300, 'Recordings that one agent has transcribed'),
    timeoutMs: timeoutMs(60_000),
    language: z.string().min(2).max(20).optional().describe('Language of the speech where a call names none.'),
    autoTranscribe: z.boolean().default(true).describe('Voice notes of chat platforms are read to the agent as text.'),
  }),
);

/** A rule of `media.vision.scopeRules`. */
const ScopeRule = once(() =>
  z.strictObject({
    channel: z.string().min(1).max(64).optional().describe('Type or name of a channel.'),
    chatType: z.enum(['direct', 'shared']).optional().describe('Kind of the chat.'),
    keyPrefix: z.string().min(1).max(256).optional().describe('Beginning of the printed key of the conversation.'),
    action: z.enum(['allow', 'deny']),
  }),
);
export type ScopeRule = z.output<ReturnType<typeof ScopeRule>>;

/** Section `media.vision`. */
export const VisionConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('Whether images are described at all.'),
    models: z
      .array(z.string().min(3).max(256))
      .max(8)
      .default([])
      .describe("Models that see (`provider/model`), in the order in which they are asked; the agent's own models that see otherwise."),
    scopeRules: z
      .array(ScopeRule())
      .max(100)
      .default([])
      .describe('Where images may be described: the first rule that matches decides; allowed otherwise. Decided before anything is fetched.'),
    maxBytes: z.int().min(1024).max(20_971_520).default(20_971_520).describe('Largest image file.'),
    maxPixels: z
      .int()
      .min(1_000_000)
      .max(200_000_000)
      .default(64_000_000)
      .describe('Most pixels of an image; a file of few bytes can claim billions.'),
    maxSide: z.int().min(256).max(8000).default(2000).describe('Longer images are scaled down to this many pixels.'),
    maxTokens: z.int().min(64).max(8192).default(1024).describe('Longest description.'),
    maxPerHour: maxPerHour(1_000, 'Images that one agent has described, each scanned page of a document among them,'),
    timeoutMs: timeoutMs(60_000),
  }),
);

/** Section `media.video`. */
export const VideoConfig = once(() =>
  z.strictObject({
    providers: z.array(VideoProvider().superRefine(needsAddress)).max(8).default([]).describe(ordered),
    maxBytes: z.int().min(1024).max(52_428_800).default(52_428_800).describe('Largest file.'),
    maxTokens: z.int().min(64).max(8192).default(1024).describe('Longest description.'),
    maxPerHour: maxPerHour(60, 'Videos that one agent has described'),
    timeoutMs: timeoutMs(120_000),
  }),
);

/** Section `tts`. */
export const TtsConfig = once(() =>
  z.strictObject({
    providers: z.array(SpeechProvider().superRefine(needsAddress)).max(8).default([]).describe(ordered),
    autoMode: z
      .enum(['off', 'never', 'always', 'inbound', 'voice_reply', 'tagged'])
      .default('off')
      .describe(
        'Which answers in chats are spoken: `always`; `voice_reply` (or `inbound`) those to voice notes; `tagged` those with a directive `[[tts]]`; `never` (or `off`) none.',
      ),
    voice: z.string().min(1).max(100).default('alloy').describe('A voice of the provider; a voice of OpenAI means the usual one of another vendor.'),
    format: z.enum(speechFormats).optional().describe('The channel decides otherwise: Opus for voice notes, MP3 elsewhere.'),
    maxTextLength: z.int().min(100).max(5000).default(4096).describe('Characters that are spoken; longer texts are refused.'),
    maxPerHour: maxPerHour(300, 'Texts that one agent has spoken'),
    timeoutMs: timeoutMs(60_000),
  }),
);

/** Section `imageGen`. */
export const ImageGenConfig = once(() =>
  z.strictObject({
    providers: z.array(ImageProvider().superRefine(needsAddress)).max(8).default([]).describe(ordered),
    maxPerHour: maxPerHour(10, 'Images that one agent generates'),
    size: z
      .string()
      .regex(/^\d{2,4}x\d{2,4}$/, 'expected WIDTHxHEIGHT')
      .default('1024x1024'),
    quality: z.enum(['low', 'medium', 'high']).default('medium').describe('For models that have qualities.'),
    safety: z.boolean().default(true).describe('Whether vendors that can turn their filter off are asked to filter.'),
    maxBytes: z.int().min(65_536).max(52_428_800).default(20_971_520).describe('Largest answer.'),
    timeoutMs: timeoutMs(120_000),
  }),
);

function needsAddress(
  { type, baseUrl, model }: { readonly type: string; readonly baseUrl?: string | undefined; readonly model?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (type !== 'openai-compatible') return;
  if (baseUrl === undefined) context.addIssue({ code: 'custom', path: ['baseUrl'], message: 'openai-compatible needs the address of the server' });
  if (model === undefined) context.addIssue({ code: 'custom', path: ['model'], message: 'openai-compatible needs the name of the model' });
}

export type TranscriptionConfig = z.output<ReturnType<typeof TranscriptionConfig>>;
export type VisionConfig = z.output<ReturnType<typeof VisionConfig>>;
export type VideoConfig = z.output<ReturnType<typeof VideoConfig>>;
export type TtsConfig = z.output<ReturnType<typeof TtsConfig>>;
export type ImageGenConfig = z.output<ReturnType<typeof ImageGenConfig>>;

/** Everything of the configuration that speech, images and video use. */
export interface MultimodalConfig {
  readonly transcription: TranscriptionConfig;
  readonly vision: VisionConfig;
  readonly video: VideoConfig;
  readonly tts: TtsConfig;
  readonly imageGen: ImageGenConfig;
}
