import { createDocument } from '@mixmark-io/domino';
import Turndown from 'turndown';

/** Longest HTML that is converted; more is cut. */
const maxHtml = 500_000;
/** Invisible to readers, and therefore a place to hide instructions for a model. */
const unreadable = 'head,script,style,noscript,template,iframe,object,embed,svg,canvas,form,[hidden],[aria-hidden="true"]';
const invisibleStyle =
  /display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)|font-size\s*:\s*0|mso-hide\s*:\s*all/i;

/** Converts the HTML of a mail to text with the marks of Markdown. Nothing is loaded or run. */
export function textOfHtml(html: string): string {
  try {
    const document = createDocument(html.slice(0, maxHtml), true);
    for (const element of document.querySelectorAll(unreadable)) element.remove();
    for (const element of document.querySelectorAll('[style]')) if (invisibleStyle.test(element.getAttribute('style') ?? '')) element.remove();
    const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
    turndown.addRule('pictures', {
      filter: 'img',
      replacement: (_content, node) => ('getAttribute' in node ? node.getAttribute('alt') : null) ?? '',
    });
    return turndown.turndown(document.body.outerHTML).trim();
  } catch {
    // Nested deeper than the parser can follow.
    return html
      .slice(0, maxHtml)
      .replaceAll(/<[^>]*>/g, ' ')
      .trim();
  }
}

/** Last line above a quoted mail, in the languages of widespread programs. */
const attribution = /(?:\b(?:wrote|schrieb\b.*|a écrit|escribió|ha scritto|schreef|skrev|escreveu|pisze)|написал\w*)\s*:\s*$/iu;
const original =
  /^-{2,}\s*(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Message d['’]origine|Mensaje original|Messaggio originale)\s*-{2,}$/i;
const originalFrom = /^\**(?:From|Von|De|Da)\s*:/i;
const maxSignatureLines = 15;

/**
 * Returns what the sender wrote: without the mail that is quoted below it, and without the signature. What is not surely one of them is kept, as
 * are answers between quoted lines.
 */
export function ownText(text: string): string {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const own = withoutSignature(lines.slice(0, startOfQuote(lines)))
    .join('\n')
    .trim();
  return own === '' ? text.trim() : own;
}

function startOfQuote(lines: readonly string[]): number {
  const copied = lines.findIndex(
    (line, at) => original.test(line.trim()) && lines.slice(at + 1, at + 4).some((next) => originalFrom.test(next.trim())),
  );
  if (copied > 0) return copied;
  let first = lines.length;
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at]?.trim() ?? '';
    if (line.startsWith('>')) first = at;
    else if (line !== '') break;
  }
  if (first === lines.length) return lines.length;
  let above = first - 1;
  while (above >= 0 && lines[above]?.trim() === '') above -= 1;
  if (!attribution.test(lines[above]?.trim() ?? '')) return lines.length;
  // The line may be broken in two or three.
  let start = above;
  while (start > 0 && above - start < 2 && lines[start - 1]?.trim() !== '') start -= 1;
  return lines
    .slice(start, above + 1)
    .join(' ')
    .trim().length <= 250 && startsAttribution(lines[start] ?? '')
    ? start
    : above;
}

const startsAttribution = (line: string): boolean => /^(?:On|Am|Le|El|Il|Op|Den|Em|W dniu)\b/i.test(line.trim());

function withoutSignature(lines: readonly string[]): readonly string[] {
  const at = lines.lastIndexOf('-- ');
  return at === -1 || lines.length - at > maxSignatureLines ? lines : lines.slice(0, at);
}
