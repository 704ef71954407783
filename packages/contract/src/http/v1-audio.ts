import * as z from 'zod';
import { once } from '../once.ts';

const speechFormats = ['mp3', 'opus', 'aac', 'flac', 'wav'] as const;
const anyModel = z.string().min(1).max(256).describe('Any name: the configuration decides which model answers.');

/** Fields of the form of `POST /v1/audio/transcriptions`, next to the file. */
export const TranscriptionFields = once(() =>
  z
    .strictObject({
      model: anyModel,
      language: z
        .string()
        .regex(/^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, 'expected a language code, such as en')
        .optional(),
      response_format: z.enum(['json', 'text', 'verbose_json']).default('json'),
      prompt: z.string().max(4096).optional().describe('Without effect.'),
      temperature: z.string().max(10).optional().describe('Without effect.'),
      stream: z.literal('false').optional().describe('Transcripts are not streamed.'),
    })
    .meta({ id: 'TranscriptionFields' }),
);

export const Transcription = once(() =>
  z
    .strictObject({
      text: z.string(),
      task: z.literal('transcribe').optional(),
      language: z.string().optional(),
      duration: z.number().optional().describe('Seconds; with `verbose_json`.'),
    })
    .meta({ id: 'Transcription' }),
);

/** Body of `POST /v1/audio/speech`. */
export const SpeechRequest = once(() =>
  z
    .strictObject({
      model: anyModel,
      input: z.string().min(1).max(100_000),
      voice: z.string().min(1).max(100).optional(),
      response_format: z.enum(speechFormats).default('mp3'),
      speed: z.number().min(0.25).max(4).optional(),
      instructions: z.string().max(4096).optional().describe('Without effect.'),
    })
    .meta({ id: 'SpeechRequest' }),
);

/** Body of `POST /v1/images/generations`. */
export const ImageRequest = once(() =>
  z
    .strictObject({
      prompt: z.string().min(1).max(8000),
      model: anyModel.optional(),
      n: z.literal(1).default(1),
      size: z
        .string()
        .regex(/^(?:auto|\d{2,4}x\d{2,4})$/, 'expected auto or WIDTHxHEIGHT')
        .optional(),
      response_format: z.literal('b64_json').optional().describe('The answer has the image itself; addresses are not made.'),
      quality: z.string().max(20).optional().describe('Without effect: `imageGen.quality`.'),
      style: z.string().max(20).optional().describe('Without effect.'),
      background: z.string().max(20).optional().describe('Without effect.'),
      output_format: z.string().max(10).optional().describe('Without effect.'),
      moderation: z.string().max(10).optional().describe('Without effect: `imageGen.safety`.'),
      user: z.string().max(512).optional().describe('Without effect.'),
    })
    .meta({ id: 'ImageRequest' }),
);

export const ImageResponse = once(() =>
  z.strictObject({ created: z.int().min(0), data: z.array(z.strictObject({ b64_json: z.string() })) }).meta({ id: 'ImageResponse' }),
);
