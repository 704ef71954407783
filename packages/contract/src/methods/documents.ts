import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';

const extracted = once(() => ({
  text: z.string().describe('Pages, sheets, slides and chapters begin with a heading; tables are Markdown tables.'),
  mimeType: z.string().describe('Type that the bytes show.'),
  extractedChars: z.int().min(0),
  truncated: z.boolean().describe('Cut at `documents.maxCharacters` or `documents.maxPages`.'),
  durationMs: z.int().min(0),
  pageCount: z.int().min(0).optional().describe('Pages of a PDF.'),
  notes: z.array(z.string()).optional().describe('What the text does not show, such as scanned pages.'),
}));
const failures = ['payload_too_large', 'unsupported_media_type', 'timeout', 'unavailable', 'rate_limited'] as const;
const csv = { text: '| a | b |\n| --- | --- |\n| 1 | 2 |', mimeType: 'text/csv', extractedChars: 36, truncated: false, durationMs: 40 };

/** Text of documents. */
export const documents = {
  'media.extract_document': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Extracts the text of a document.',
    description:
      'PDF, DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB, RTF, mail files, HTML, CSV, JSON, Markdown and plain text; archives are listed, not unpacked. ' +
      'The type is read from the bytes. Encrypted and broken files fail with `invalid_params`, which says why.',
    params: () =>
      z.strictObject({
        attachment_url: z
          .string()
          .min(1)
          .max(2048)
          .describe('The id of a media file of the caller, `/media/<id>`, or an http(s) address that is public.'),
      }),
    result: () => z.strictObject({ ...extracted(), fileName: z.string().optional() }),
    errors: ['not_found', ...failures],
    examples: [{ params: { attachment_url: 'md_0199e0a0-7c00-7000-8000-000000000001.csv' }, result: { ...csv, fileName: 'table.csv' } }],
    since: '0.1.0',
  }),
  'media.test.document': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Extracts the text of a document, to try the configuration; nothing is stored.',
    params: () =>
      z.strictObject({
        file: z.string().min(1).max(140_000_000).describe('The file as base64, with or without a data: prefix.'),
        mimeType: z.string().min(1).max(100).optional().describe('Only a hint: the type is read from the bytes.'),
        fileName: z.string().min(1).max(255).optional().describe('Its extension chooses among kinds of text.'),
      }),
    result: () => z.strictObject({ ...extracted(), fileName: z.string() }),
    errors: [...failures],
    examples: [{ params: { file: 'YSxiCjEsMgo=', fileName: 'table.csv' }, result: { ...csv, fileName: 'table.csv' } }],
    since: '0.1.0',
  }),
};
