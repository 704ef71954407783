import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { beforeEach, expect, test } from 'vitest';
import { type Log, silentLog } from '../../../../kernel/log.ts';
import { createFence } from '../../../../runtime/fence.ts';
import type { MemoryQuery, ScoredMemory } from '../api.ts';
import { createRecall } from './recall.ts';

const { wrap } = createFence({ key: Buffer.alloc(32, 1) });
const clock = createStepClock();
const memory: ScoredMemory = {
  entry: {
    id: 'm1',
    agentId: 'default',
    principalId: 'token:ada',
    content: 'Ada likes tea',
    memoryType: 'semantic',
    trustLevel: 'learned',
    taintLevel: 'clean',
    source: { who: 'default' },
    tags: [],
    createdAtMs: clock.now(),
    proofCount: 0,
    pinned: false,
  },
  score: 1,
  explain: {},
};

let asked: MemoryQuery[];
let uses: { used: string[]; failed: string[] };
let warned: string[];
let search: (query: MemoryQuery) => Promise<readonly ScoredMemory[]>;
const log: Log = { ...silentLog, warn: (_, message) => void warned.push(message) };
const recall = createRecall({
  search(query) {
    asked.push(query);
    return search(query);
  },
  remembers: (agentId) => agentId === 'default',
  uses: { used: (_, ids) => void uses.used.push(...ids), failed: (_, ids) => void uses.failed.push(...ids) },
  fence: wrap,
  clock,
  log,
});
beforeEach(() => {
  asked = [];
  warned = [];
  uses = { used: [], failed: [] };
  search = async () => [memory];
});

const about = (changes: object = {}) => ({
  agentId: 'default',
  principalId: 'token:ada',
  conversationRef: 'cv_1',
  question: 'What does Ada like?',
  room: 100_000,
  signal: new AbortController().signal,
  ...changes,
});
const configured = (recalled: NonNullable<AgentConfigInput['memory']>['recall'] = {}) => AgentConfig.parse({ memory: { recall: recalled } });

test('searches as the agent is configured and counts what it shows', async () => {
  const found = await recall.recall(about(), configured({ maxResults: 3, minScore: 0.2, trust: ['learned'] }), 'rpc');
  expect(found).toMatchObject({ ids: ['m1'], text: expect.stringContaining('Ada likes tea') });
  expect(asked).toMatchObject([
    { text: 'What does Ada like?', agentId: 'default', principalId: 'token:ada', limit: 6, minScore: 0.2, trust: ['learned'], keepVector: false },
  ]);
  expect(uses.used).toEqual(['m1']);
});

test('costs nothing when there is nothing to recall: no promise, no search', () => {
  expect(recall.recall(about({ agentId: 'empty' }), configured(), 'rpc')).toBeUndefined();
  expect(recall.recall(about(), configured({ enabled: false }), 'rpc')).toBeUndefined();
  expect(recall.recall(about(), configured(), 'v1')).toBeUndefined();
  expect(recall.recall(about({ question: ' \n' }), configured(), 'rpc')).toBeUndefined();
  expect(asked).toEqual([]);
});

test('completions of /v1 recall when the agent allows it', async () => {
  expect(await recall.recall(about(), configured({ v1: true }), 'v1')).toMatchObject({ ids: ['m1'] });
});

test('continues without memories after 300 ms, logs it, and stops the search', async () => {
  let stopped: AbortSignal | undefined;
  search = ({ signal }) => {
    stopped = signal;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
  };
  const recalling = recall.recall(about(), configured(), 'rpc');
  clock.advance(299);
  expect(stopped?.aborted).toBe(false);
  clock.advance(1);
  expect(await recalling).toBeUndefined();
  expect(stopped?.aborted).toBe(true);
  expect(warned).toEqual(['Continuing a turn without memories: the search took too long']);
  expect(uses.used).toEqual([]);
});

test('continues without memories when the search fails, and silently when the caller left', async () => {
  search = () => Promise.reject(new Error('no'));
  expect(await recall.recall(about(), configured(), 'rpc')).toBeUndefined();
  expect(warned).toEqual(['Continuing a turn without memories: the search failed']);
  const gone = AbortSignal.abort();
  search = ({ signal }) => Promise.reject(signal.reason);
  expect(await recall.recall(about({ signal: gone }), configured(), 'rpc')).toBeUndefined();
  expect(warned).toHaveLength(1);
});

test('uses at most a quarter of a small window, and searches for both ends of a long message', async () => {
  search = async () => [{ ...memory, entry: { ...memory.entry, content: 'tea '.repeat(3000) } }];
  const large = await recall.recall(about({ question: `first ${'x'.repeat(50_000)} last` }), configured(), 'rpc');
  const small = await recall.recall(about({ room: 1200 }), configured(), 'rpc');
  expect(small?.text.length).toBeLessThan((large?.text.length ?? 0) / 2);
  expect(asked[0]?.text).toMatch(/^first x+ x+ last$/);
  expect(asked[0]?.text.length).toBe(4001);
  expect(await recall.recall(about({ room: 200 }), configured(), 'rpc')).toBeUndefined();
});

test.each([
  ['context_loop', { kind: 'context_loop' }, ['m1']],
  ['max_steps', { kind: 'max_steps' }, ['m1']],
  ['output_starved', { kind: 'output_starved' }, ['m1']],
  ['max_steps', undefined, []],
  ['stop', undefined, []],
  ['provider_degraded', { kind: 'server' }, []],
  ['error', { kind: 'auth' }, []],
  ['budget_exceeded', { kind: 'budget_exceeded' }, []],
  ['aborted', { kind: 'aborted' }, []],
] as const)('an end %s (%o) is booked on %o', (finishReason, failure, failed) => {
  recall.attribute({ agentId: 'default', ids: ['m1'] }, { finishReason, ...(failure !== undefined && { failure }) });
  expect(uses.failed).toEqual(failed);
});
