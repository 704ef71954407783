import { createStore } from '../../data/store.ts';

/** A call that was made in this tab. Answers are not kept: they may be large, and hold what is nobody else's business. */
export interface PastCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly atMs: number;
  readonly ok: boolean;
}

const storageKey = 'gatehouse.calls';
const maxCalls = 50;
const maxParamsLength = 20_000;

export const pastCalls = createStore<readonly PastCall[]>(restore());

export function rememberCall(call: PastCall): void {
  if (JSON.stringify(call.params).length > maxParamsLength) return;
  const next = [call, ...pastCalls.get()].slice(0, maxCalls);
  pastCalls.set(next);
  sessionStorage.setItem(storageKey, JSON.stringify(next));
}

export function forgetCalls(): void {
  pastCalls.set([]);
  sessionStorage.removeItem(storageKey);
}

function restore(): readonly PastCall[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isPastCall) : [];
  } catch {
    return [];
  }
}

function isPastCall(value: unknown): value is PastCall {
  return (
    typeof value === 'object' &&
    value !== null &&
    'method' in value &&
    typeof value.method === 'string' &&
    'params' in value &&
    typeof value.params === 'object' &&
    value.params !== null &&
    'atMs' in value &&
    typeof value.atMs === 'number' &&
    'ok' in value &&
    typeof value.ok === 'boolean'
  );
}
