import type { CompletionMessage } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { ModelPart } from '../../llm/model.ts';
import { isBase64, readDataUrl } from '../../llm/wire/data-url.ts';

/** A map: callers choose the name. */
const typeOfExtension: ReadonlyMap<string, string> = new Map([
  ['pdf', 'application/pdf'],
  ['json', 'application/json'],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['xml', 'text/xml'],
  ['yaml', 'text/yaml'],
  ['yml', 'text/yaml'],
]);

/** Converts an image; the turn decides which URLs are accepted. */
export function imagePart(url: string, detail: 'low' | 'high' | 'auto' | null | undefined): ModelPart {
  return detail == null ? { type: 'image', url } : { type: 'image', url, detail };
}

/** Converts a file: a PDF stays a file, text becomes text. `data` is a base64 `data:` URL, or plain base64 when `name` reveals the type. */
export function filePart(data: string, name: string | null | undefined, param: string): ModelPart {
  const given = readDataUrl(data) ?? { mediaType: typeOfExtension.get(extensionOf(name ?? '')), base64: data };
  const { mediaType } = given;
  const text = mediaType !== undefined && (mediaType.startsWith('text/') || mediaType === 'application/json');
  if ((mediaType !== 'application/pdf' && !text) || !isBase64(given.base64))
    throw new AppError('invalid_params', `${param}: expected base64 of a PDF or of text, as a data: URL or with a file name that shows its type`, {
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

/** Converts a file in a function's results; one that no model accepts becomes a note, because a conversation that holds it must continue. */
export function resultFile(data: string | null | undefined, name: string | null | undefined): ModelPart {
  const unusable: ModelPart = {
    type: 'text',
    text: `[file ${JSON.stringify(name ?? 'file')} left out: it is neither a PDF nor text, or was not part of the request]`,
  };
  if (data == null) return unusable;
  try {
    return filePart(data, name, 'file_data');
  } catch {
    return unusable;
  }
}

/** Builds the result of a function, with parts when it holds more than text. */
export function toolMessage(toolCallId: string, modelParts: readonly ModelPart[]): Extract<CompletionMessage, { role: 'tool' }> {
  const { content, parts } = userMessage(modelParts);
  return { role: 'tool', content, toolCallId, ...(parts !== undefined && { parts }) };
}

/** Builds a user's message: texts alone are joined by newlines, anything else is sent as parts. */
export function userMessage(modelParts: readonly ModelPart[]): {
  readonly role: 'user';
  readonly content: string;
  readonly parts?: readonly ModelPart[];
} {
  const texts = modelParts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const content = texts.join('\n');
  return texts.length === modelParts.length ? { role: 'user', content } : { role: 'user', content, parts: modelParts };
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}
