import type { TextRules } from '../../port.ts';
import { cutPoint } from './fitting.ts';

/** Cuts plain text into lines that fit; a long answer ends with `note`. */
export function cutLines(text: string, { most, unit, maxParts }: TextRules, note: string): string[] {
  const fits = (part: string): boolean => (unit === 'bytes' ? Buffer.byteLength(part) : part.length) <= most;
  const parts: string[] = [];
  for (const line of text.split('\n').map((one) => one.trimEnd())) {
    for (let rest = line; /[^\s\p{Cf}]/u.test(rest);) {
      const at = fits(rest) ? rest.length : Math.max(1, cutPoint(rest, fits));
      parts.push(rest.slice(0, at).trimEnd());
      rest = rest.slice(at).trimStart();
      if (parts.length > maxParts) return [...parts.slice(0, maxParts - 1), note];
    }
  }
  return parts;
}
