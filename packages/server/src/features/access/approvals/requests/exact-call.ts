import { hash } from 'node:crypto';

/** What an approval is bound to: any change makes it another call. */
export interface ExactCall {
  readonly agentId: string;
  readonly conversationRef: string;
  readonly tool: string;
  readonly fingerprint: string;
  /** Parsed. */
  readonly args: unknown;
  readonly workspaceDir: string;
  /** Digest of the files that the arguments name. */
  readonly files: string;
  /** Turn that is suspended until the request is decided. */
  readonly turnId?: string | undefined;
}

/** Returns SHA-256 in hex. Throws TypeError for arguments that JSON cannot represent. */
export function digestOf(call: ExactCall): string {
  return hash('sha256', canonicalJson(call), 'hex');
}

/** Serializes equal values to equal text, and only those; refuses what JSON would omit or change silently. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || !isPlain(value)) throw new TypeError(`JSON has no ${typeof value} like this`);
  const pairs = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${pairs.join(',')}}`;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Freezes the checked arguments, so that exactly they run. */
export function freezeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  Object.freeze(value);
  for (const item of Object.values(value)) freezeDeep(item);
}

/** Copies arguments for people, with `hide` applied to each text, key and number; the result is always valid JSON. */
export function hideIn(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value);
  if (typeof value === 'number') return hide(String(value)) === String(value) ? value : hide(String(value));
  if (Array.isArray(value)) return value.map((item) => hideIn(item, hide));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [hide(key), hideIn(item, hide)]));
}
