import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `documents` of config.yaml. */
export const DocumentsConfig = once(() =>
  z.strictObject({
    maxFileBytes: z.int().min(1024).max(104_857_600).default(26_214_400).describe('Largest file whose text is extracted, in bytes.'),
    maxCharacters: z.int().min(1000).max(2_000_000).default(200_000).describe('Characters after which the text of a document is cut.'),
    maxPages: z.int().min(1).max(10_000).default(500).describe('Pages of a PDF, slides or chapters after which a document is cut.'),
    maxScannedPages: z
      .int()
      .min(0)
      .max(200)
      .default(20)
      .describe('Scanned pages of a document that a model reads from pictures (`media.vision`), one call each; 0: none, and no images.'),
    timeoutMs: z.int().min(1000).max(300_000).default(30_000).describe('Longest time for one document.'),
  }),
);
export type DocumentsConfig = z.output<ReturnType<typeof DocumentsConfig>>;
