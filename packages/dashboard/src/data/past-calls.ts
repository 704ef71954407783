import { createStore, type Store } from './store.ts';

/** A call made in this tab. Answers are not kept: they may be large and confidential. */
export interface PastCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly atMs: number;
  readonly ok: boolean;
}

export interface CallHistory {
  /** Newest first. */
  readonly calls: Store<readonly PastCall[]>;
  remember(call: PastCall): void;
  forget(): void;
  /** Stops recording: a call may finish after its session has ended. */
  close(): void;
}

const storageKey = 'gatehouse.calls';
const maxCalls = 50;
const maxParamsLength = 20_000;

export function createCallHistory(): CallHistory {
  const calls = createStore<readonly PastCall[]>(restore());
  let closed = false;
  return {
    calls,
    remember(call) {
      if (closed || JSON.stringify(call.params).length > maxParamsLength) return;
      const next = [call, ...calls.get()].slice(0, maxCalls);
      calls.set(next);
      sessionStorage.setItem(storageKey, JSON.stringify(next));
    },
    forget() {
      calls.set([]);
      sessionStorage.removeItem(storageKey);
    },
    close: () => void (closed = true),
  };
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
