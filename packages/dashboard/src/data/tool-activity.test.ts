import { expect, test } from 'vitest';
import type { FeedEntry } from './live.ts';
import { activityKey, createToolActivities } from './tool-activity.ts';

function open() {
  let emit: (entry: FeedEntry) => void = () => undefined;
  const activities = createToolActivities({
    listen(onEvent) {
      emit = onEvent;
      return () => undefined;
    },
  });
  const send = (kind: string, payload: unknown) => emit({ number: 1, kind, payload, atMs: 0 });
  return { activities, send, of: (sessionKey: string) => activities.get().get(activityKey('default', sessionKey)) };
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

test('follows a call from start to end and keeps its start time', () => {
  const { send, of } = open();
  send('tool:started', { ...call, timestamp: 1000 });
  expect(of('ada:desk')).toMatchObject([{ toolName: 'exec', description: 'npm test', startedAtMs: 1000, outcome: undefined }]);
  send('tool:finished', { ...call, durationMs: 250, outcome: 'ok', timestamp: 1260 });
  expect(of('ada:desk')).toMatchObject([{ startedAtMs: 1000, outcome: 'ok', durationMs: 250 }]);
  send('tool:started', { ...call, callId: 'c1', turnId: 't2', timestamp: 2000 });
  expect(of('ada:desk')).toHaveLength(2);
});

test('adds a call whose start was missed when it ends; ignores invalid payloads', () => {
  const { send, of, activities } = open();
  send('tool:finished', { ...call, durationMs: 250, outcome: 'error', timestamp: 1260 });
  expect(of('ada:desk')).toMatchObject([{ startedAtMs: 1010, outcome: 'error' }]);
  const before = activities.get();
  for (const payload of [null, 'x', {}, { ...call, callId: 7 }]) send('tool:started', payload);
  send('message:sent', call);
  expect(activities.get()).toBe(before);
});

test('drops old conversations and old calls', () => {
  const { send, of, activities } = open();
  for (let at = 0; at < 300; at++) send('tool:started', { ...call, callId: `c${at}`, timestamp: at });
  expect(of('ada:desk')).toHaveLength(200);
  expect(of('ada:desk')?.at(-1)?.callId).toBe('c299');
  for (let at = 0; at < 50; at++) send('tool:started', { ...call, sessionKey: `ada:${at}`, timestamp: at });
  expect(activities.get().size).toBe(40);
  expect(of('ada:desk')).toBeUndefined();
});
