import { slackActions } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { slack as platform } from './platform.ts';
import { never, open, startWorld } from './testing/connect.ts';

async function startLab() {
  const { slack, ...world } = await startWorld();
  const { adapter } = open({ slack, ...world });
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  /** Runs an action as the method does: parameters pass its schema, and so does the result. */
  const act = async (name: keyof typeof slackActions, params: object = {}) => {
    const row = slackActions[name];
    const done = await adapter.action!(name, row.params().parse(params), { conversationId: lab }, { signal: never });
    return done.is === 'done' ? row.result().parse(done.value) : done;
  };
  return { slack, adapter, ada, lab, act };
}

test('every action changes what it names, and its result fits its schema', async () => {
  const { slack, ada, lab, act } = await startLab();
  const eve = slack.person('Eve');
  const messageId = slack.write(ada, lab, 'pin me');
  const state = () => slack.channelState(lab);
  expect(await act('pin', { message_id: messageId })).toEqual({ pinned: true, channelId: lab, messageId });
  expect([...state().pins]).toEqual([messageId]);
  expect(await act('unpin', { channel_id: lab, message_id: messageId })).toEqual({ unpinned: true, channelId: lab, messageId });
  expect([...state().pins]).toEqual([]);
  expect(await act('set_topic', { topic: 'Tea' })).toEqual({ topicSet: true, channelId: lab, topic: 'Tea' });
  expect(await act('set_purpose', { purpose: 'Cake' })).toEqual({ purposeSet: true, channelId: lab, purpose: 'Cake' });
  expect(await act('invite', { user_ids: [eve] })).toEqual({ invited: true, channelId: lab, userIds: [eve] });
  expect(await act('members_list', { limit: 2 })).toEqual({ channelId: lab, members: [slack.botUser, ada], hasMore: true });
  expect(await act('members_list')).toMatchObject({ members: [slack.botUser, ada, eve], hasMore: false });
  expect(await act('kick', { user_id: ada })).toEqual({ kicked: true, channelId: lab, userId: ada });
  expect(await act('channel_info')).toEqual({
    channelId: lab,
    name: 'lab',
    isPrivate: false,
    isArchived: false,
    topic: 'Tea',
    purpose: 'Cake',
    memberCount: 2,
  });
  expect(await act('bookmark_add', { title: 'Docs', link: 'https://x.test/' })).toMatchObject({ bookmarked: true, channelId: lab });
  expect(state().bookmarks).toMatchObject([{ title: 'Docs', link: 'https://x.test/' }]);
  expect(await act('archive')).toEqual({ archived: true, channelId: lab });
  expect(state().isArchived).toBe(true);
  expect(await act('unarchive')).toEqual({ unarchived: true, channelId: lab });
  const made = await act('create_channel', { name: 'new-lab', is_private: true });
  expect(made).toMatchObject({ created: true, name: 'new-lab' });
  expect(slack.channelState('channelId' in made ? String(made.channelId) : '').name).toBe('new-lab');
  const calls = slack.calls.length;
  expect(await act('sendTyping')).toEqual({ typing: false });
  expect(slack.calls).toHaveLength(calls);
});

test('an action concerns the conversation of the endpoint, and what Slack refuses is said', async () => {
  const { slack, adapter, ada, lab, act } = await startLab();
  const other = slack.channel('other');
  expect(await act('archive', { channel_id: other })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(slack.channelState(other).isArchived).toBe(false);
  expect(await act('create_channel', { name: 'other' })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await act('pin', { message_id: '1.000000' })).toMatchObject({ is: 'failed', kind: 'not_found' });
  slack.fault('conversations.kick', { is: 'error', error: 'restricted_action' });
  expect(await act('kick', { user_id: ada })).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await adapter.action!('toString', {}, { conversationId: lab }, { signal: never })).toEqual({
    is: 'failed',
    kind: 'invalid',
    text: 'Unsupported action: toString on slack',
  });
  expect(platform.capabilities.actions).toEqual(Object.keys(slackActions));
});

test('parameters are checked before anything is called', () => {
  expect(() => slackActions.pin.params().parse({ message_id: 'last' })).toThrow(/expected the id of a message/);
  expect(() => slackActions.create_channel.params().parse({ name: 'Not This' })).toThrow(/lower-case/);
  expect(() => slackActions.bookmark_add.params().parse({ title: 'x', link: 'javascript:x' })).toThrow();
  expect(() => slackActions.archive.params().parse({ unknown: 1 })).toThrow(/unrecognized/i);
});
