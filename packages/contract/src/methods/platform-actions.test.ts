import { describe, expect, test } from 'vitest';
import type { PlatformActions } from '../shared/platform-action.ts';
import { actionsByPlatform, actionsOf, platformActions } from './platform-actions.ts';

const endpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: '#lab', conversationKind: 'shared' };
const issuesOf = (params: object) => platformActions['irc.action'].params.safeParse({ endpoint, ...params }).error?.issues ?? [];

test('parameters are those of the row of the action', () => {
  expect(issuesOf({ action: 'topic', topic: 'Release' })).toEqual([]);
  expect(issuesOf({ action: 'topic' })).toMatchObject([{ path: ['topic'] }]);
  expect(issuesOf({ action: 'topic', topic: 'two\nlines' })).toMatchObject([{ path: ['topic'], message: 'expected one line' }]);
  expect(issuesOf({ action: 'names', topic: 'Release' })).toMatchObject([{ code: 'unrecognized_keys', keys: ['topic'] }]);
  expect(issuesOf({ action: 'names', other: 1 })).toMatchObject([{ code: 'unrecognized_keys', keys: ['other'] }]);
});

test('an unknown action is answered with the known ones', () => {
  for (const action of ['ban', 'constructor', '__proto__'])
    expect(issuesOf({ action })[0]?.message).toBe('Invalid option: expected one of "join"|"part"|"topic"|"names"|"sendTyping"');
  expect(Object.keys(actionsOf('constructor'))).toEqual([]);
});

describe.each(Object.entries(actionsByPlatform))('actions of %s', (_platform, actions) => {
  test.each(Object.entries(actions))('%s has strict parameters, apart from those of every action', (_name, { params, summary, risk }) => {
    expect(Object.keys(params().shape)).not.toContain('action');
    expect(Object.keys(params().shape)).not.toContain('endpoint');
    expect(params().safeParse({ anUndeclaredKey: true }).success).toBe(false);
    expect(summary).toMatch(/^[A-Z]/);
    expect(['read', 'mutate', 'destructive']).toContain(risk);
  });
});

test.each(Object.entries(actionsByPlatform))('the example of %s.action fits the row of its action', (platform, actions: PlatformActions) => {
  const { params, result } = platformActions[`${platform}.action` as keyof typeof platformActions].examples[0] ?? expect.fail('no example');
  const { action, endpoint: _endpoint, ...own } = params;
  const row = actions[action] ?? expect.fail(action);
  expect(row.params().safeParse(own)).toMatchObject({ success: true });
  expect(row.result().safeParse(result)).toMatchObject({ success: true });
});
