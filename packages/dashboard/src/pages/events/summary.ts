/** Fields that tell most about an event, in the order in which they are worth reading. */
const telling = [
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

/** One line about an event: its most telling fields. */
export function summarize(payload: unknown): string {
  if (typeof payload !== 'object' || payload === null) return payload === undefined ? '' : String(payload);
  const fields = new Map<string, unknown>(Object.entries(payload));
  const parts = telling.flatMap((name) => {
    const text = wordsOf(fields.get(name));
    return text === undefined ? [] : [name === 'activeTurns' ? `${text} active turns` : text];
  });
  const tokens = fields.get('tokens');
  if (typeof tokens === 'object' && tokens !== null && 'total' in tokens) parts.push(`${String(tokens.total)} tokens`);
  return parts.slice(0, maxParts).join(' · ');
}

function wordsOf(value: unknown): string | undefined {
  const inner = typeof value === 'object' && value !== null && 'text' in value ? value.text : value;
  if (typeof inner !== 'string' && typeof inner !== 'number' && typeof inner !== 'boolean') return undefined;
  const text = String(inner).replaceAll(/\s+/g, ' ').trim();
  if (text === '') return undefined;
  return text.length > maxPartLength ? `${text.slice(0, maxPartLength - 1)}…` : text;
}
