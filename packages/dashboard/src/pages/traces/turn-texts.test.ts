import type { StoredMessage, TraceRecord, TraceStep } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { allNodes, buildTrace } from './trace-rows.ts';
import { loadTurn, textsOf } from './turn-texts.ts';

const tokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };
const steps: readonly TraceStep[] = [
  { id: 0, kind: 'model', name: 'local/m', at: 0, ms: 1, outcome: 'error' },
  { id: 1, kind: 'model', name: 'local/m', at: 1, ms: 1, outcome: 'ok' },
  { id: 2, kind: 'tool', name: 'exec', at: 2, ms: 1, outcome: 'ok', facts: { callId: 'c1' } },
  { id: 3, kind: 'model', name: 'local/m', at: 3, ms: 1, outcome: 'ok' },
];
const record: TraceRecord = {
  id: 'tn_1',
  kind: 'turn',
  traceId: 't',
  conversationRef: `cv_${'a'.repeat(43)}`,
  principalId: 'token:ada',
  startedAtMs: 5000,
  endedAtMs: 6000,
  outcome: 'ok',
  endReason: 'stop',
  error: null,
  model: null,
  modelCalls: 2,
  toolCalls: 1,
  toolErrors: 0,
  tokens,
  costNano: 0,
  synthetic: false,
  refs: {},
  facts: {},
  steps: [...steps],
  droppedSteps: 0,
};
const message = (seq: number, role: StoredMessage['role'], content: string, more: Partial<StoredMessage> = {}): StoredMessage => ({
  seq,
  turnId: 'tn_1',
  role,
  content,
  timestamp: 5000 + seq,
  ...more,
});
const stored = [
  message(1, 'user', 'How many?'),
  message(2, 'assistant', '', { toolCalls: [{ id: 'c1', name: 'exec', arguments: '{"n":1}' }] }),
  message(3, 'tool', '42', { toolCallId: 'c1', toolName: 'exec' }),
  message(4, 'assistant', 'It is 42.'),
];

test('steps get the texts of the stored turn: tools by their call, model calls in their order', () => {
  const roots = buildTrace([record]);
  expect(allNodes(roots).map((node) => textsOf(node, roots, stored))).toEqual([
    { input: 'How many?', output: 'It is 42.' },
    { input: undefined, output: undefined },
    { input: undefined, output: '→ exec {"n":1}' },
    { input: '{"n":1}', output: '42' },
    { input: undefined, output: 'It is 42.' },
  ]);
});

test('no answer is shown with a call that may not have led to it', () => {
  const roots = buildTrace([record]);
  const [, , call] = allNodes(roots);
  expect(call && textsOf(call, roots, stored.slice(0, 3))).toEqual({ input: undefined, output: undefined });
});

test('the messages of a turn are read backward, page by page, until they are older than the turn', async () => {
  const all = Array.from({ length: 900 }, (_, at) =>
    message(at + 1, 'user', `m${at}`, { turnId: at === 500 ? 'tn_1' : 'tn_x', timestamp: 4500 + at }),
  );
  const offsets: number[] = [];
  const client = {
    call: async (_method: string, { offset = 0, limit }: { offset?: number; limit: number }) => {
      if (limit > 1) offsets.push(offset);
      return { messages: all.slice(offset, offset + limit), total: all.length };
    },
  };
  const found = await loadTurn(client as never, record, new AbortController().signal);
  expect(found.map(({ content }) => content)).toEqual(['m500']);
  expect(offsets).toEqual([700, 500, 300]);
});
