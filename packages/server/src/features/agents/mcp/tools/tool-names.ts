import { createHash } from 'node:crypto';

/** Providers accept names of letters, digits, "_" and "-" up to this length. */
const maxLength = 64;

/**
 * Returns the name for models: `mcp__<server>--<tool>`. Other characters become "_"; a name that is too long, or
 * in `taken`, ends in a digest of the original, so that it stays the same whatever else the server offers.
 */
export function callableName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = `mcp__${server}--${tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
  if (plain.length <= maxLength && !taken.has(plain)) return plain;
  const digest = createHash('sha256').update(tool).digest('hex').slice(0, 8);
  return `${plain.slice(0, maxLength - digest.length - 1)}_${digest}`;
}

/** Whether a name matches one of the patterns, in which "*" stands for any characters. */
export function fitsPattern(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const parts = pattern.split('*');
    if (parts.length === 1) return name === pattern;
    const first = parts[0] ?? '';
    const last = parts.at(-1) ?? '';
    if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
    let at = first.length;
    for (const part of parts.slice(1, -1)) {
      const found = name.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= name.length - last.length;
  });
}
