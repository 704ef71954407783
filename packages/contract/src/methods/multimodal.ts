import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId } from '../shared/session.ts';

/** Texts of base64, which is a third longer than the bytes: 50 MiB of video, 25 MiB of audio, 20 MiB of an image. */
const most = { audio: 35_000_000, image: 28_000_000, video: 70_000_000 };
const base64 = (name: keyof typeof most) => z.string().min(1).max(most[name]).describe(`The ${name} as base64, with or without a data: prefix.`);
const MimeType = once(() => z.string().min(1).max(100).optional().describe('Only a hint: the type is read from the bytes.'));
const Language = once(() =>
  z
    .string()
    .regex(/^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, 'expected a language code, such as en or pt-BR')
    .optional()
    .describe('Language of the speech; recognized otherwise.'),
);
const Prompt = once(() => z.string().min(1).max(8000).optional());
const AttachmentUrl = once(() =>
  z.string().min(1).max(2048).describe('The id of a media file of the caller, `/media/<id>`, or an http(s) address that is public.'),
);
const Voice = once(() => z.string().min(1).max(100).optional().describe('A voice of the provider; that of the configuration otherwise.'));
export const speechFormats = ['mp3', 'opus', 'wav', 'aac', 'flac'] as const;
export type SpeechFormat = (typeof speechFormats)[number];
const Format = once(() => z.enum(speechFormats).optional());
const ForAgent = once(() => AgentId.optional().describe('The agent that pays, and whose workspace it is; the default agent otherwise.'));
const AutoMode = once(() => z.enum(['always', 'never', 'voice_reply', 'off', 'inbound', 'tagged']));
export type TtsAutoMode = z.output<ReturnType<typeof AutoMode>>;

const transcript = once(() => ({
  text: z.string(),
  language: z.string().optional(),
  durationMs: z.int().min(0).optional().describe('Length of the speech.'),
}));
const described = once(() => ({
  description: z.string(),
  provider: z.string().optional(),
  model: z.string().optional(),
}));
const hello = { text: 'Hello there.', language: 'en', durationMs: 1200 };
const chart = { description: 'A bar chart with three bars.', provider: 'openai', model: 'gpt-4o' };
const failures = ['not_found', 'precondition_failed', 'payload_too_large', 'rate_limited', 'timeout', 'unavailable', 'denied'] as const;
const aFile = 'md_0199e0a0-7c00-7000-8000-000000000001.ogg';

/** Speech, images and video. */
export const multimodal = {
  'audio.transcribe': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Converts speech to text; returns `{error}` when no provider is configured, or none of them could.',
    params: () => z.strictObject({ audio: base64('audio'), mimeType: MimeType(), language: Language(), agentId: ForAgent() }),
    result: () => z.union([z.strictObject(transcript()), z.strictObject({ error: z.string() })]),
    examples: [
      { params: { audio: 'T2dnUw==', language: 'en' }, result: hello },
      { params: { audio: 'T2dnUw==' }, result: { error: 'Speech-to-text is not configured: set media.transcription.providers' } },
    ],
    since: '0.1.0',
  }),
  'media.transcribe': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Converts the speech of an audio or video file to text.',
    params: () => z.strictObject({ attachment_url: AttachmentUrl(), language: Language(), agentId: ForAgent() }),
    result: () => z.strictObject(transcript()),
    errors: [...failures],
    examples: [{ params: { attachment_url: aFile }, result: hello }],
    since: '0.1.0',
  }),
  'media.describe_video': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Has a model describe a video.',
    params: () =>
      z.strictObject({
        attachment_url: AttachmentUrl(),
        prompt: Prompt().describe('What to look for; a short description otherwise.'),
        agentId: ForAgent(),
      }),
    result: () => z.strictObject(described()),
    errors: [...failures],
    examples: [{ params: { attachment_url: 'md_0199e0a0-7c00-7000-8000-000000000001.mp4' }, result: { ...chart, description: 'A cat jumps.' } }],
    since: '0.1.0',
  }),
  'media.providers': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns which providers of speech, images, video, documents and links are configured; null for what is not.',
    params: () => z.strictObject({}),
    result: () => {
      const state = z.enum(['ok', 'refused', 'cooling', 'unreachable']);
      const states = z.record(z.string(), state).describe('What the last calls have shown, by provider.');
      return z.strictObject({
        stt: z.strictObject({ provider: z.string(), model: z.string().optional(), fallback: z.array(z.string()), states }).nullable(),
        tts: z
          .strictObject({
            provider: z.string(),
            voice: z.string(),
            format: z.string().nullable().describe('Null: the channel decides.'),
            autoMode: AutoMode(),
            fallback: z.array(z.string()),
            states,
          })
          .nullable(),
        vision: z
          .strictObject({
            providers: z.array(z.string()),
            defaultProvider: z.string().optional(),
            videoCapable: z.array(z.string()),
            states,
          })
          .nullable(),
        imageGen: z.strictObject({ provider: z.string(), model: z.string(), fallback: z.array(z.string()), maxPerHour: z.int(), states }).nullable(),
        documentExtraction: z.strictObject({ enabled: z.boolean(), supportedMimes: z.array(z.string()) }).nullable(),
        linkUnderstanding: z.strictObject({ enabled: z.boolean(), maxLinks: z.int() }),
      });
    },
    examples: [
      {
        params: {},
        result: {
          stt: { provider: 'openai', model: 'gpt-4o-mini-transcribe', fallback: ['groq'], states: { openai: 'ok', groq: 'ok' } },
          tts: null,
          vision: null,
          imageGen: null,
          documentExtraction: null,
          linkUnderstanding: { enabled: true, maxLinks: 3 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'media.test.stt': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Converts speech to text, to try the configuration.',
    params: () => z.strictObject({ audio: base64('audio'), mimeType: MimeType(), language: Language() }),
    result: () => z.strictObject({ ...transcript(), provider: z.string() }),
    errors: [...failures],
    examples: [{ params: { audio: 'T2dnUw==' }, result: { ...hello, provider: 'openai' } }],
    since: '0.1.0',
  }),
  'media.test.tts': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Converts text to speech, to try the configuration; nothing is stored.',
    params: () => z.strictObject({ text: z.string().min(1).max(5000), voice: Voice(), format: Format() }),
    result: () => z.strictObject({ audio: z.string().describe('Base64.'), mimeType: z.string(), sizeBytes: z.int().min(0), provider: z.string() }),
    errors: [...failures],
    examples: [{ params: { text: 'Hello' }, result: { audio: 'SUQz', mimeType: 'audio/mpeg', sizeBytes: 3, provider: 'openai' } }],
    since: '0.1.0',
  }),
  'media.test.vision': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Has a model describe an image, to try the configuration.',
    params: () =>
      z.strictObject({
        image: base64('image'),
        mimeType: MimeType(),
        prompt: Prompt(),
        provider: z.string().min(1).max(256).optional().describe('Only the configured models of this provider.'),
      }),
    result: () => z.strictObject({ description: z.string(), provider: z.string(), model: z.string() }),
    errors: [...failures],
    examples: [{ params: { image: 'iVBORw0KGgo=' }, result: chart }],
    since: '0.1.0',
  }),
  'media.test.video': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Has a model describe a video, to try the configuration.',
    params: () =>
      z.strictObject({
        video: base64('video'),
        mimeType: MimeType(),
        prompt: Prompt(),
        provider: z.string().min(1).max(256).optional().describe('Only this provider of `media.video.providers`.'),
      }),
    result: () => z.strictObject({ description: z.string(), provider: z.string(), model: z.string() }),
    errors: [...failures],
    examples: [{ params: { video: 'AAAAIGZ0eXA=' }, result: { ...chart, provider: 'google', model: 'gemini-2.5-flash' } }],
    since: '0.1.0',
  }),
  'media.test.link': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Reads a web page as `link.process` does, to try the configuration.',
    params: () => z.strictObject({ url: z.string().min(1).max(2048) }),
    result: () => z.strictObject({ enrichedText: z.string(), linksProcessed: z.int().min(0), errors: z.array(z.string()) }),
    examples: [{ params: { url: 'https://example.com/' }, result: { enrichedText: 'https://example.com/', linksProcessed: 1, errors: [] } }],
    since: '0.1.0',
  }),
  'image.analyze': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Has a model describe an image, or answer a question about it.',
    description:
      'The rules of `media.vision.scopeRules` are asked before anything is fetched; where they deny it, the description says so. ' +
      'Images larger than models take are scaled down. Text in the image is text from outside.',
    params: () =>
      z
        .strictObject({
          source_type: z.enum(['file', 'url', 'base64', 'attachment']).optional(),
          source: z
            .string()
            .min(1)
            .max(most.image)
            .optional()
            .describe('A path of the workspace, an address, base64 or a data: URI, or a media file, as `source_type` says.'),
          attachment_url: AttachmentUrl().optional().describe('The same as `source` with `source_type: "attachment"`.'),
          prompt: Prompt().describe('The question; a detailed description otherwise.'),
          mime_type: MimeType(),
          agentId: ForAgent(),
        })
        .refine(({ source, source_type: type, attachment_url: url }) => (url === undefined) === (source !== undefined && type !== undefined), {
          path: ['source'],
          message: 'expected source_type and source, or attachment_url alone',
        }),
    result: () => z.strictObject(described()),
    errors: [...failures],
    examples: [{ params: { source_type: 'url', source: 'https://example.com/chart.png' }, result: chart }],
    since: '0.1.0',
  }),
  'image.generate': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Generates an image from a text, or changes one.',
    description:
      'A call of an agent that acts for a chat delivers the image there; otherwise, or when that fails, it is returned as base64. ' +
      'An agent generates at most `imageGen.maxPerHour` images in an hour. Failures are results: `{success: false, error}`.',
    params: () =>
      z.strictObject({
        prompt: z.string().min(1).max(8000),
        size: z
          .string()
          .regex(/^(?:auto|\d{2,4}x\d{2,4})$/, 'expected auto or WIDTHxHEIGHT')
          .optional()
          .describe('Such as 1024x1024; `imageGen.size` otherwise.'),
        model: z.string().min(1).max(256).optional().describe('Another model of the first provider.'),
        reference_image: AttachmentUrl().optional().describe('An image to change, for providers that can.'),
        agentId: ForAgent(),
      }),
    result: () =>
      z.union([
        z.strictObject({ success: z.literal(true), delivered: z.literal(true), mimeType: z.string() }),
        z.strictObject({ success: z.literal(true), imageBase64: z.string(), mimeType: z.string() }),
        z.strictObject({ success: z.literal(false), error: z.string() }),
      ]),
    examples: [
      { params: { prompt: 'A lighthouse at dusk' }, result: { success: true, imageBase64: 'iVBORw0KGgo=', mimeType: 'image/png' } },
      { params: { prompt: 'A lighthouse' }, result: { success: false, error: 'Image generation is not configured: set imageGen.providers' } },
    ],
    since: '0.1.0',
  }),
  'tts.synthesize': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Converts text to speech and stores it in the workspace below `media/tts/`; it is deleted after one hour.',
    description:
      'A directive in the text, such as `[[tts:voice=nova speed=1.2]]`, wins over the parameters, and these over the configuration. ' +
      'Without a format the channel of the caller decides: Opus for voice notes, MP3 otherwise.',
    params: () => z.strictObject({ text: z.string().min(1).max(100_000), voice: Voice(), format: Format(), agentId: ForAgent() }),
    result: () => z.strictObject({ filePath: z.string(), mimeType: z.string(), sizeBytes: z.int().min(0) }),
    errors: [...failures],
    examples: [
      {
        params: { text: 'Good morning.' },
        result: { filePath: 'media/tts/tts-0199e0a0-7c00-7000-8000-000000000001.mp3', mimeType: 'audio/mpeg', sizeBytes: 18_240 },
      },
    ],
    since: '0.1.0',
  }),
  'tts.auto_check': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Decides by `tts.autoMode` whether an answer is spoken; no speech is made.',
    params: () =>
      z.strictObject({
        response_text: z.string().max(100_000),
        has_inbound_audio: z.boolean().default(false).describe('The message that it answers was spoken.'),
        has_media_url: z.boolean().default(false).describe('The answer has a file.'),
      }),
    result: () =>
      z.strictObject({
        shouldSynthesize: z.boolean(),
        strippedText: z.string().optional().describe('The text without directives, when there were any.'),
        mode: AutoMode().describe('As it is configured.'),
      }),
    examples: [
      { params: { response_text: '[[tts]]Good morning.' }, result: { shouldSynthesize: true, strippedText: 'Good morning.', mode: 'tagged' } },
    ],
    since: '0.1.0',
  }),
};
