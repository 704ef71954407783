import type { ModelInfo, ModelRequest, ModelSink } from './model.ts';

/** Fixtures for the tests of this folder and its neighbours. */
export const testModel: ModelInfo = {
  provider: 'mock',
  modelId: 'mock-fast',
  displayName: 'mock-fast',
  contextWindow: 128_000,
  maxTokens: 4096,
  input: ['text'],
  reasoning: false,
  price: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
  validated: true,
};

export function testRequest(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: testModel,
    system: [],
    messages: [{ role: 'user', content: 'hello' }],
    tools: [],
    cacheRetention: 'none',
    maxAnswerBytes: 8_388_608,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...changes,
  };
}

export interface Collected extends ModelSink {
  /** Every fragment, unescaped separately. */
  readonly fragments: string[];
  flushes: number;
  /** Makes the next `flush` return false; `drained` waits for `release`. */
  block(): void;
  release(): void;
}

export function collectingSink(): Collected {
  const fragments: string[] = [];
  let blocked = false;
  let wake: (() => void) | undefined;
  return {
    fragments,
    flushes: 0,
    text: (fragment) => void fragments.push(String(JSON.parse(`"${fragment}"`))),
    flush() {
      this.flushes += 1;
      return !blocked;
    },
    drained: () => new Promise((resolve) => (wake = resolve)),
    block: () => (blocked = true),
    release() {
      blocked = false;
      wake?.();
    },
  };
}
