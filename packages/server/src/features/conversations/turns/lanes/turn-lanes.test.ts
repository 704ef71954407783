import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { createLanes, LaneKeptError } from '../../../../kernel/lane.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import { createTurnLanes, type TurnEntry } from './turn-lanes.ts';

const agentOf = (config: AgentConfigInput = {}): Agent => ({
  id: 'a',
  config: AgentConfig.parse(config),
  source: 'file',
  suspended: false,
  isDefault: true,
  workspaceDir: '/nonexistent',
});

function setUp() {
  const lanes = createLanes();
  const present = new Set<string>();
  const kept = new Set<string>();
  const resumed: string[] = [];
  const turnLanes = createTurnLanes({
    lanes,
    keptLanes: {
      has: (workId) => kept.has(workId),
      free(workId) {
        if (kept.delete(workId)) lanes.unkeep('one');
      },
    },
    entered({ ref }) {
      present.add(ref);
      return () => present.delete(ref);
    },
    resumeWaiting: async (ref) => void resumed.push(ref),
  });
  const entry = (ref: string, over: Partial<TurnEntry> = {}): TurnEntry => ({
    target: { ref, sessionKey: 'x:y', agentId: 'a', principalId: 'p' },
    agent: agentOf(),
    kept: true,
    signal: new AbortController().signal,
    ...over,
  });
  /** Starts a turn that runs until it is ended. */
  function begin(given: TurnEntry) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const turn = { hasBegun: false, end: resolve, ended: Promise.resolve() };
    turn.ended = turnLanes.enter(given, () => {
      turn.hasBegun = true;
      return promise;
    });
    return turn;
  }
  return { lanes, turnLanes, present, kept, resumed, entry, begin };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('runs the turns of a conversation one after the other, and marks it as existing until the last has ended', async () => {
  const { turnLanes, present, entry, begin } = setUp();
  const first = begin(entry('one'));
  const second = begin(entry('one'));
  const other = begin(entry('two', { kept: false }));
  await settle();
  expect([first.hasBegun, second.hasBegun, other.hasBegun, turnLanes.queued()]).toEqual([true, false, true, 1]);
  expect([...present]).toEqual(['one']);
  first.end();
  await first.ended;
  await settle();
  expect(second.hasBegun).toBe(true);
  second.end();
  other.end();
  await Promise.all([second.ended, other.ended]);
  expect([present.size, turnLanes.queued()]).toEqual([0, 0]);
});

test('runs as many turns of an agent as it allows; delegated ones do not count', async () => {
  const { entry, begin } = setUp();
  const agent = agentOf({ maxConcurrentRuns: 1 });
  const first = begin(entry('one', { agent }));
  const second = begin(entry('two', { agent }));
  const delegated = begin(entry('three', { agent, delegated: true }));
  await settle();
  expect([first.hasBegun, second.hasBegun, delegated.hasBegun]).toEqual([true, false, true]);
  for (const turn of [first, second, delegated]) turn.end();
  await Promise.all([first.ended, second.ended, delegated.ended]);
});

test('frees the lane of a turn that fails', async () => {
  const { turnLanes, present, entry, lanes } = setUp();
  await expect(turnLanes.enter(entry('one'), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect([present.size, lanes.of('one').running]).toEqual([0, false]);
});

test('lets only the parked turn return to a kept lane', async () => {
  const { lanes, turnLanes, kept, entry, begin } = setUp();
  lanes.keep('one');
  kept.add('wi_parked');
  await expect(turnLanes.enter(entry('one', { workId: 'wi_other' }), async () => {})).rejects.toBeInstanceOf(LaneKeptError);
  const parked = begin(entry('one', { workId: 'wi_parked' }));
  await settle();
  expect([parked.hasBegun, kept.size, lanes.isKept('one')]).toEqual([true, 0, false]);
  parked.end();
  await parked.ended;
});

test('resumes work behind a conversation unless its lane is still kept', async () => {
  const { lanes, turnLanes, resumed } = setUp();
  lanes.keep('one');
  await turnLanes.waitBehind('one');
  expect(resumed).toEqual([]);
  lanes.unkeep('one');
  await turnLanes.waitBehind('one');
  expect(resumed).toEqual(['one']);
});
