import { t } from '../../language.ts';
/** The most informative event fields, in order of importance. */
const informative = [
  'message',
  'content',
  'delta',
  'actionType',
  'outcome',
  'target',
  'agentId',
  'sessionKey',
  'provider',
  'model',
  'finishReason',
  'category',
  'principalId',
  'error',
  'source',
  'riskLevel',
  'activeTurns',
] as const;
const maxParts = 4;
const maxPartLength = 120;

/** Summarizes an event in one line of its most informative fields. */
export function summarize(payload: unknown): string {
  if (typeof payload !== 'object' || payload === null) return payload === undefined ? '' : String(payload);
  const fields = new Map<string, unknown>(Object.entries(payload));
  const parts = informative.flatMap((name) => {
    const text = textOf(fields.get(name));
    return text === undefined ? [] : [name === 'activeTurns' ? t('{text} active turns', { text }) : text];
  });
  const tokens = fields.get('tokens');
  if (typeof tokens === 'object' && tokens !== null && 'total' in tokens) parts.push(t('{total} tokens', { total: String(tokens.total) }));
  return parts.slice(0, maxParts).join(' · ');
}

function textOf(value: unknown): string | undefined {
  const inner = typeof value === 'object' && value !== null && 'text' in value ? value.text : value;
  if (typeof inner !== 'string' && typeof inner !== 'number' && typeof inner !== 'boolean') return undefined;
  const text = String(inner).replaceAll(/\s+/g, ' ').trim();
  if (text === '') return undefined;
  return text.length > maxPartLength ? `${text.slice(0, maxPartLength - 1)}…` : text;
}
