import { parseJson } from '../../../../kernel/json.ts';

const textKinds: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  markdown: 'text/markdown',
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  html: 'text/html',
  htm: 'text/html',
  xhtml: 'text/html',
  json: 'application/json',
  eml: 'message/rfc822',
};

/** Returns the type of a text, by how it begins and by the extension of its file. */
export function kindOfText(text: string, extension: string | undefined): string {
  const start = text.slice(0, 2048);
  const isMail =
    /^(?:[A-Za-z][A-Za-z-]{1,60}:[^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*){2}/.test(start) &&
    /^(?:from|received|return-path|mime-version|message-id):/im.test(start);
  if (/^\s*<(?:!doctype\s+html|html)/i.test(start)) return 'text/html';
  if (isMail && extension !== 'md') return 'message/rfc822';
  return textKinds[extension ?? ''] ?? (/^\s*<\?xml/.test(start) ? 'application/xml' : isJson(start, text) ? 'application/json' : 'text/plain');
}

/** A long text is not parsed to find out. */
function isJson(start: string, text: string): boolean {
  if (!/^\s*[{[]/.test(start) || text.length > 1_048_576) return false;
  try {
    parseJson(text, { maxDepth: 256 });
    return true;
  } catch {
    return false;
  }
}
