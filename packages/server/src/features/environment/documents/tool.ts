import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool, ToolContext } from '../../../runtime/tool.ts';
import type { FileTaints } from '../workspace/api.ts';
import type { DocumentsApi, DocumentText } from './api.ts';
import { findInParts, printFacts, showDocument, takeParts, withNext } from './shown.ts';
import type { DocumentSources } from './sources.ts';

const args = once(() =>
  z.strictObject({
    path: z.string().min(1).max(4096).optional().describe('A file of your workspace folder.'),
    media_id: z.string().min(1).max(200).optional().describe('An uploaded file, instead of a path.'),
    parts: z
      .string()
      .regex(/^\d{1,6}(?:-\d{1,6})?$/, 'expected a number or a range, such as 3 or 3-7')
      .optional()
      .describe('Parts to show by number, such as 3 or 3-7; the outline and the beginning of a long document otherwise.'),
    find: z.string().min(1).max(500).optional().describe('Terms to find: shows the parts that contain them.'),
  }),
);

/** Below the limit of the turn loop on results, so that no part is lost between two calls. */
const maxShown = 40_000;

export interface ReadDocumentDeps {
  readonly api: DocumentsApi;
  readonly sources: DocumentSources;
  readonly taints: Pick<FileTaints, 'isTainted'>;
}

/** `read_document`: the text of a document in numbered parts. */
export function createReadDocumentTool({ api, sources, taints }: ReadDocumentDeps): Tool<ReturnType<typeof args>> {
  async function load(path: string | undefined, mediaId: string | undefined, context: ToolContext) {
    using _slot = await sources.slot(context.call);
    if (path !== undefined && mediaId === undefined) {
      const file = await sources.file(context.workspaceDir, path, api.maxFileBytes);
      const document = await api.extract({ ...file, param: 'path' }, context.call);
      // Checked after the file is read: changes made meanwhile are marked by then.
      return { document, outside: { source: `workspace file ${path}`, clean: !(await taints.isTainted(context, path)) } };
    }
    if (mediaId === undefined || path !== undefined) throw new AppError('invalid_params', 'Expected either path or media_id', { param: 'path' });
    const file = await sources.stored(mediaId, 'media_id', api.maxFileBytes, context.call);
    return { document: await api.extract({ ...file, param: 'media_id' }, context.call), outside: { source: 'attachment' } };
  }

  return {
    name: 'read_document',
    description:
      'Shows the text of a document (PDF, DOCX, XLSX, PPTX, ODT, EPUB, RTF, mail, HTML, CSV …) in numbered parts: pages, sheets, slides, sections. ' +
      'Lists an archive. Cite the label of the part.',
    get args() {
      return args();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs: 120_000,
    describe: ({ path, media_id }) => `Read ${path ?? media_id ?? 'a document'}`,
    async run({ path, media_id, parts, find }, context) {
      const { document, outside } = await load(path, media_id, { ...context, call: { ...context.call, signal: context.signal } });
      return { content: `${printFacts(document)}\n\n${shownOf(document, parts, find)}`, outside };
    },
  };
}

function shownOf(document: DocumentText, range: string | undefined, query: string | undefined): string {
  const { parts } = document;
  if (parts.length === 0) return '(no text)';
  if (query !== undefined) return findInParts(parts, query);
  if (range !== undefined) {
    const [first = 1, last = first] = range.split('-').map(Number);
    if (first < 1 || first > parts.length || last < first)
      throw new AppError('invalid_params', `parts: the document has parts 1 to ${parts.length}`, { param: 'parts' });
    return withNext(takeParts(parts, first, last, maxShown));
  }
  return showDocument(document);
}
