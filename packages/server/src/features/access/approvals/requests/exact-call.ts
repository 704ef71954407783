import { hash } from 'node:crypto';

/** What an approval is bound to: any change makes another call of it. */
export interface ExactCall {
  readonly agentId: string;
  readonly conversationRef: string;
  readonly tool: string;
  readonly fingerprint: string;
  /** Parsed. */
  readonly args: unknown;
  readonly workspaceDir: string;
  /** Of the files that the arguments name. */
  readonly files: string;
  /** Of a turn that is left until somebody decides. */
  readonly turnId?: string | undefined;
}

/** SHA-256 in hex. Throws TypeError for arguments that JSON cannot hold. */
export function digestOf(call: ExactCall): string {
  return hash('sha256', canonicalJson(call), 'hex');
}

/** The same text for equal values and for no others; what JSON would leave out or change without a word is refused. */
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

/** What was looked at is what runs: nothing in it can be changed from here on. */
export function freezeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  Object.freeze(value);
  for (const item of Object.values(value)) freezeDeep(item);
}

/** A copy for people in which `hide` has gone over each text, key and number; still JSON whatever was hidden. */
export function hideIn(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value);
  if (typeof value === 'number') return hide(String(value)) === String(value) ? value : hide(String(value));
  if (Array.isArray(value)) return value.map((item) => hideIn(item, hide));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [hide(key), hideIn(item, hide)]));
}
