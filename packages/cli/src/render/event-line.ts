import type { GapEvent, ServerEvent } from '@gatehouse/client';
import type { Paint } from './paint.ts';
import { plainText, shorten } from './plain.ts';

/** Maximum length of a value in characters. */
const valueLength = 120;
/** Fields shown first, in this order. */
const first = ['agentId', 'sessionKey'];
/** Fields that the line already shows or that only programs need; `--json` has them. */
const hidden = new Set([...first, 'timestamp', 'conversationRef', 'turnId', 'traceId', 'messageId']);

const gapReasons: Record<GapEvent['payload']['reason'], string> = {
  expired: 'events were missed: they are older than the daemon keeps',
  unknown: 'the start id is not from this daemon',
  lost: 'events were lost: a crash or a full disk prevented storing them',
  not_kept: 'events of /v1 turns were missed: they are not stored',
};

/** Formats an event in one line: time (UTC), kind, then its fields; nested fields by their path. */
export function renderEvent({ kind, payload }: ServerEvent | GapEvent, paint: Paint, now: number): string {
  const fields = Object.fromEntries(flatten(payload));
  const at = typeof fields['timestamp'] === 'number' ? fields['timestamp'] : now;
  const time = paint('dim', new Date(at).toISOString().slice(11, 23));
  if (kind === 'gap') return `${time}  ${paint('red', `gap: ${gapReasons[payload.reason] ?? 'events were missed'}`)}`;
  const name = plainText(kind);
  const shown = [...first, ...Object.keys(fields).filter((field) => !hidden.has(field))];
  const words = shown.flatMap((field) => (fields[field] === undefined ? [] : [`${paint('dim', `${plainText(field)}=`)}${valueText(fields[field])}`]));
  return [time, paint(colorOf(kind), name) + ' '.repeat(Math.max(0, 26 - name.length)), ...words].join('  ').trimEnd();
}

function* flatten(value: unknown, path = ''): Generator<[path: string, value: unknown]> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    if (path !== '') yield [path, value];
    return;
  }
  for (const [name, inner] of Object.entries(value)) yield* flatten(inner, path === '' ? name : `${path}.${name}`);
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const short = plainText(shorten(text, valueLength));
  return typeof value === 'string' && (short === '' || /[\s"=]/.test(short)) ? `"${short.replaceAll('"', '\\"')}"` : short;
}

function colorOf(kind: string): Parameters<Paint>[0] {
  if (/error|exhausted|degraded|rejected|failed/.test(kind)) return 'red';
  return /^(security|audit|secret):/.test(kind) || /fallback|cooldown/.test(kind) ? 'yellow' : 'cyan';
}
