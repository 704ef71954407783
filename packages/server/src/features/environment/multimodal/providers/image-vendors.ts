import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { ModelError } from '../../../../llm/model.ts';
import { isBase64, readDataUrl } from '../../../../llm/wire/data-url.ts';
import type { ImageGenConfig } from '../config.ts';
import type { Provider, VendorRow } from './entry.ts';
import { askProvider, bearer, multipart, readAnswer } from './request.ts';

export type ImageEntry = ImageGenConfig['providers'][number];

export interface ImageWish {
  readonly prompt: string;
  readonly model: string;
  readonly size: string;
  readonly quality: ImageGenConfig['quality'];
  readonly safety: boolean;
  /** An image to change. */
  readonly reference: { readonly bytes: Uint8Array; readonly mimeType: string; readonly extension: string } | undefined;
  readonly boundary: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ImageVendor extends VendorRow {
  /** US dollars of one image; undefined when it is not known. */
  readonly priceOf: (model: string, wish: Pick<ImageWish, 'size' | 'quality'>) => number | undefined;
  readonly generate: (provider: Provider<ImageEntry>, wish: ImageWish) => Promise<Buffer>;
}

/** A map, because callers choose the model: every object has a property "constructor". */
const googlePrices: ReadonlyMap<string, number> = new Map([
  ['gemini-2.5-flash-image', 0.039],
  ['imagen-4.0-generate-001', 0.04],
  ['imagen-4.0-fast-generate-001', 0.02],
]);
/** Base64 is a third longer. */
const withBase64 = (bytes: number) => Math.ceil(bytes * 1.4) + 65_536;
const OpenAiImages = once(() => z.object({ data: z.array(z.object({ b64_json: z.string().nullish(), url: z.string().nullish() })).min(1) }));
const FalImages = once(() => z.object({ images: z.array(z.object({ url: z.string() })).min(1) }));
const GoogleParts = once(() =>
  z.object({
    candidates: z
      .array(
        z.object({
          content: z.object({ parts: z.array(z.object({ inlineData: z.object({ data: z.string() }).optional() })).default([]) }).optional(),
        }),
      )
      .default([]),
  }),
);
const GooglePredictions = once(() => z.object({ predictions: z.array(z.object({ bytesBase64Encoded: z.string().optional() })).default([]) }));

async function generateByOpenAi(provider: Provider<ImageEntry>, wish: ImageWish): Promise<Buffer> {
  const { prompt, model, size, quality, reference, boundary } = wish;
  const isOwn = model.startsWith('gpt-image');
  const wanted = { model, prompt, size, n: 1, ...(isOwn ? { quality } : { response_format: 'b64_json' }) };
  const fields = Object.fromEntries(Object.entries(wanted).map(([name, value]) => [name, String(value)]));
  const sent =
    reference === undefined
      ? { path: '/images/generations', json: wanted }
      : {
          path: '/images/edits',
          form: multipart(boundary, fields, [
            { name: 'image', fileName: `image.${reference.extension}`, contentType: reference.mimeType, bytes: reference.bytes },
          ]),
        };
  const { body } = await askProvider(provider, { ...sent, headers: bearer(provider), ...boundsOf(wish) });
  const [image] = readAnswer(provider, body, OpenAiImages()).data;
  return typeof image?.b64_json === 'string' ? decode(provider, image.b64_json) : fetchImage(provider, image?.url ?? '', wish);
}

async function generateByFal(provider: Provider<ImageEntry>, wish: ImageWish): Promise<Buffer> {
  const [width, height] = wish.size.split('x').map(Number);
  const { reference } = wish;
  const { body } = await askProvider(provider, {
    path: `/${wish.model}`,
    headers: provider.key === undefined ? {} : { authorization: `Key ${provider.key}` },
    json: {
      prompt: wish.prompt,
      image_size: { width, height },
      num_images: 1,
      enable_safety_checker: wish.safety,
      sync_mode: true,
      ...(reference !== undefined && { image_url: `data:${reference.mimeType};base64,${Buffer.from(reference.bytes).toString('base64')}` }),
    },
    ...boundsOf(wish),
  });
  const [image] = readAnswer(provider, body, FalImages()).images;
  const data = readDataUrl(image?.url ?? '');
  return data === undefined ? fetchImage(provider, image?.url ?? '', wish) : decode(provider, data.base64);
}

async function generateByGoogle(provider: Provider<ImageEntry>, wish: ImageWish): Promise<Buffer> {
  const headers = provider.key === undefined ? {} : { 'x-goog-api-key': provider.key };
  const path = `/models/${encodeURIComponent(wish.model)}`;
  const { reference } = wish;
  if (wish.model.startsWith('imagen')) {
    const json = { instances: [{ prompt: wish.prompt }], parameters: { sampleCount: 1, aspectRatio: aspectOf(wish.size) } };
    const { body } = await askProvider(provider, { path: `${path}:predict`, headers, json, ...boundsOf(wish) });
    const encoded = readAnswer(provider, body, GooglePredictions()).predictions[0]?.bytesBase64Encoded;
    return decode(provider, encoded);
  }
  const image = reference && { inlineData: { mimeType: reference.mimeType, data: Buffer.from(reference.bytes).toString('base64') } };
  const json = {
    contents: [{ parts: [{ text: wish.prompt }, ...(image === undefined ? [] : [image])] }],
    generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: aspectOf(wish.size) } },
  };
  const { body } = await askProvider(provider, { path: `${path}:generateContent`, headers, json, ...boundsOf(wish) });
  const parts = readAnswer(provider, body, GoogleParts()).candidates.flatMap(({ content }) => content?.parts ?? []);
  return decode(provider, parts.find(({ inlineData }) => inlineData !== undefined)?.inlineData?.data);
}

const boundsOf = ({ maxBytes, timeoutMs, signal }: ImageWish) => ({ maxBytes: withBase64(maxBytes), timeoutMs, signal });

function decode({ name }: Provider, encoded: string | undefined): Buffer {
  // A vendor that refuses a prompt answers without an image.
  if (encoded === undefined) throw new ModelError('bad_request', `${name} returned no image; its filter may have refused the prompt`);
  if (!isBase64(encoded)) throw new ModelError('bad_response', `${name} returned an image that is not base64`);
  return Buffer.from(encoded, 'base64');
}

async function fetchImage(provider: Provider<ImageEntry>, url: string, { maxBytes, timeoutMs, signal }: ImageWish): Promise<Buffer> {
  if (!/^https?:\/\//.test(url)) throw new ModelError('bad_response', `${provider.name} returned no image`);
  const { body } = await askProvider(provider, { path: url, method: 'GET', maxBytes, timeoutMs, signal });
  return body;
}

const aspects: readonly (readonly [string, number])[] = [
  ['1:1', 1],
  ['3:4', 3 / 4],
  ['4:3', 4 / 3],
  ['9:16', 9 / 16],
  ['16:9', 16 / 9],
];

/** Returns the ratio of Google's list that is nearest. */
function aspectOf(size: string): string {
  const [width = 1, height = 1] = size.split('x').map(Number);
  const ratio = Math.log(width / height);
  let nearest = aspects[0];
  for (const aspect of aspects)
    if (nearest === undefined || Math.abs(Math.log(aspect[1]) - ratio) < Math.abs(Math.log(nearest[1]) - ratio)) nearest = aspect;
  return nearest?.[0] ?? '1:1';
}

const isSquare = (size: string): boolean => {
  const [width, height] = size.split('x');
  return width === height;
};
const gptImage = { low: [0.011, 0.016], medium: [0.042, 0.063], high: [0.167, 0.25] } as const;

/** Prices from general knowledge, not compared with the price lists of the vendors; an entry of the configuration replaces them. */
export const imageVendors: Readonly<Record<ImageEntry['type'], ImageVendor>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: ['OPENAI_API_KEY'],
    model: 'gpt-image-1',
    priceOf(model, { size, quality }) {
      if (model === 'gpt-image-1') return gptImage[quality][isSquare(size) ? 0 : 1];
      if (model === 'dall-e-3') return isSquare(size) ? 0.04 : 0.08;
      return undefined;
    },
    generate: generateByOpenAi,
  },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyEnv: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    model: 'gemini-2.5-flash-image',
    priceOf: (model) => googlePrices.get(model),
    generate: generateByGoogle,
  },
  fal: {
    baseUrl: 'https://fal.run',
    keyEnv: ['FAL_KEY'],
    model: 'fal-ai/flux/dev',
    priceOf(model, { size }) {
      const [width = 0, height = 0] = size.split('x').map(Number);
      return model === 'fal-ai/flux/dev' ? 0.025 * Math.ceil((width * height) / 1_000_000) : undefined;
    },
    generate: generateByFal,
  },
  'openai-compatible': { keyEnv: [], model: '', keyless: true, priceOf: () => undefined, generate: generateByOpenAi },
};
