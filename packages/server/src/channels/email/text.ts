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
