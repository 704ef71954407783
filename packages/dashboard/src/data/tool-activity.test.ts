import { expect, test } from 'vitest';
import type { FeedEntry } from './live.ts';
import { activityKey, createToolActivities } from './tool-activity.ts';

function open() {
  let tell: (entry: FeedEntry) => void = () => undefined;
  const activities = createToolActivities({
    listen(onEvent) {
      tell = onEvent;
      return () => undefined;
    },
  });
  const say = (kind: string, payload: unknown) => tell({ number: 1, kind, payload, atMs: 0 });
  return { activities, say, of: (sessionKey: string) => activities.get().get(activityKey('default', sessionKey)) };
}

const call = {
  agentId: 'default',
  sessionKey: 'ada:desk',
  conversationRef: 'cv_1',
  turnId: 't1',
  callId: 'c1',
  toolName: 'exec',
  description: 'npm test',
};

test('a call is told from its begin to its end, with the time that it began at', () => {
  const { say, of } = open();
  say('tool:started', { ...call, timestamp: 1000 });
  expect(of('ada:desk')).toMatchObject([{ toolName: 'exec', description: 'npm test', startedAtMs: 1000, outcome: undefined }]);
  say('tool:finished', { ...call, durationMs: 250, outcome: 'ok', timestamp: 1260 });
  expect(of('ada:desk')).toMatchObject([{ startedAtMs: 1000, outcome: 'ok', durationMs: 250 }]);
  say('tool:started', { ...call, callId: 'c1', turnId: 't2', timestamp: 2000 });
  expect(of('ada:desk')).toHaveLength(2);
});

test('one whose begin was missed is told at its end; what is none is passed over', () => {
  const { say, of, activities } = open();
  say('tool:finished', { ...call, durationMs: 250, outcome: 'error', timestamp: 1260 });
  expect(of('ada:desk')).toMatchObject([{ startedAtMs: 1010, outcome: 'error' }]);
  const before = activities.get();
  for (const payload of [null, 'x', {}, { ...call, callId: 7 }]) say('tool:started', payload);
  say('message:sent', call);
  expect(activities.get()).toBe(before);
});

test('old conversations and old calls are let go of', () => {
  const { say, of, activities } = open();
  for (let at = 0; at < 300; at++) say('tool:started', { ...call, callId: `c${at}`, timestamp: at });
  expect(of('ada:desk')).toHaveLength(200);
  expect(of('ada:desk')?.at(-1)?.callId).toBe('c299');
  for (let at = 0; at < 50; at++) say('tool:started', { ...call, sessionKey: `ada:${at}`, timestamp: at });
  expect(activities.get().size).toBe(40);
  expect(of('ada:desk')).toBeUndefined();
});
