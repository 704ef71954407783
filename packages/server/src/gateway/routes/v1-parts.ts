import type { CompletionMessage } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { ModelPart } from '../../llm/model.ts';
import { isBase64, readDataUrl } from '../../llm/wire/data-url.ts';

const typeOfExtension: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  json: 'application/json',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  xml: 'text/xml',
  yaml: 'text/yaml',
  yml: 'text/yaml',
};

/** An image for a model; which URLs are taken is the turn's to say. */
export function imagePart(url: string, detail: 'low' | 'high' | 'auto' | null | undefined): ModelPart {
  return detail == null ? { type: 'image', url } : { type: 'image', url, detail };
}

/** A file for a model: a PDF goes as it is, text as text. `data` is a base64 `data:` URL, or base64 alone when `name` tells the type. */
export function filePart(data: string, name: string | null | undefined, param: string): ModelPart {
  const given = readDataUrl(data) ?? { mediaType: typeOfExtension[extensionOf(name ?? '')], base64: data };
  const { mediaType } = given;
  const text = mediaType !== undefined && (mediaType.startsWith('text/') || mediaType === 'application/json');
  if ((mediaType !== 'application/pdf' && !text) || !isBase64(given.base64))
    throw new AppError('invalid_params', `${param}: expected base64 of a PDF or of text, as a data: URL or beside a file name that tells its type`, {
      param,
    });
  if (!text) return { type: 'file', url: `data:application/pdf;base64,${given.base64}`, name: name ?? 'file.pdf' };
  try {
    const content = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(given.base64, 'base64'));
    return { type: 'text', text: `File ${JSON.stringify(name ?? 'file')}:\n${content}` };
  } catch (cause) {
    throw new AppError('invalid_params', `${param}: the text of the file is not valid UTF-8`, { param, cause });
  }
}

/** A file among the results of a function; what no model would take becomes a note, for a conversation that holds it must go on. */
export function resultFile(data: string | null | undefined, name: string | null | undefined): ModelPart {
  const unusable: ModelPart = {
    type: 'text',
    text: `[file ${JSON.stringify(name ?? 'file')} left out: it is neither a PDF nor text, or was not sent along]`,
  };
  if (data == null) return unusable;
  try {
    return filePart(data, name, 'file_data');
  } catch {
    return unusable;
  }
}

/** The result of a function: with parts where it holds more than text. */
export function toolMessage(toolCallId: string, pieces: readonly ModelPart[]): Extract<CompletionMessage, { role: 'tool' }> {
  const { content, parts } = userMessage(pieces);
  return { role: 'tool', content, toolCallId, ...(parts !== undefined && { parts }) };
}

/** A user's message of several pieces: text alone is joined by newlines, anything else goes as parts. */
export function userMessage(pieces: readonly ModelPart[]): {
  readonly role: 'user';
  readonly content: string;
  readonly parts?: readonly ModelPart[];
} {
  const texts = pieces.flatMap((piece) => (piece.type === 'text' ? [piece.text] : []));
  const content = texts.join('\n');
  return texts.length === pieces.length ? { role: 'user', content } : { role: 'user', content, parts: pieces };
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}
