import type { TextRules } from '../../../channels/port.ts';

const cutNote = '… (cut)';

/**
 * Cuts an answer into the parts that a platform takes: never inside a surrogate pair, at spaces where it can. On platforms whose parts are lines
 * the marks of Markdown that mean nothing there are removed.
 */
export function partsOf(text: string, { most, unit, isLine, maxParts }: TextRules): string[] {
  const size = unit === 'bytes' ? (part: string) => Buffer.byteLength(part) : (part: string) => part.length;
  const blocks = isLine ? plainLines(text) : [text.trim()];
  const parts: string[] = [];
  for (const block of blocks) {
    for (let rest = block; rest !== '';) {
      const part = size(rest) <= most ? rest : headThatFits(rest, most, size);
      parts.push(part.trimEnd());
      rest = rest.slice(part.length).trimStart();
      if (parts.length > maxParts) return [...parts.slice(0, maxParts - 1), cutNote];
    }
  }
  return parts.filter((part) => part !== '');
}

function headThatFits(text: string, most: number, size: (part: string) => number): string {
  let [low, high] = [1, Math.min(text.length, most)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (size(text.slice(0, middle)) <= most) low = middle;
    else high = middle - 1;
  }
  const head = text.slice(0, low);
  const space = head.lastIndexOf(' ');
  if (space > low / 2) return head.slice(0, space);
  // The second half of a pair would be a broken character.
  return isHighSurrogate(head.charCodeAt(head.length - 1)) && head.length > 1 ? head.slice(0, -1) : head;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** Returns the lines of a text without Markdown that a line cannot show: fences, heading marks, emphasis, and the markup of links. */
function plainLines(text: string): string[] {
  let isCode = false;
  const lines: string[] = [];
  for (const raw of text.split(/\r\n|[\r\n\u2028\u2029]/)) {
    const line = raw.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '').trimEnd();
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    else if (line.trim() !== '') lines.push(isCode ? line : inlinePlain(line));
  }
  return lines;
}

function inlinePlain(line: string): string {
  return line
    .replace(/^#{1,6}\s+/, '')
    .replaceAll(/\*\*([^*]+)\*\*/g, '$1')
    .replaceAll(/!?\[([^\]]+)\]\((\S+?)\)/g, '$1 <$2>');
}
