import { telegramActions } from '@gatehouse/contract';
import { afterEach, expect, test } from 'vitest';
import { ada, addGroup, closeAll, eve, group, never, open, startTelegram } from './testing.ts';

afterEach(closeAll);

async function ready(bot: 'member' | 'administrator' = 'administrator') {
  const fake = await startTelegram();
  addGroup(fake.telegram, { isForum: true, bot });
  const { adapter } = open(fake);
  const act = (name: string, params: Readonly<Record<string, unknown>> = {}, threadId?: string) =>
    adapter.action?.(name, params, { conversationId: String(group), threadId }, { signal: never });
  /** Carries out an action, whose result must be as the contract says. */
  const done = async (name: keyof typeof telegramActions, params: Readonly<Record<string, unknown>> = {}, threadId?: string) => {
    const result = await act(name, params, threadId);
    if (result?.is !== 'done') throw new Error(`${name}: ${JSON.stringify(result)}`);
    expect(telegramActions[name].result().parse(result.value)).toEqual(result.value);
    return result.value;
  };
  return { ...fake, act, done, group: () => fake.telegram.chats.group(group) };
}
const chatId = String(group);

test('messages are pinned and unpinned', async () => {
  const { telegram, done, group: now } = await ready();
  const id = telegram.chats.say(ada, 'important', { chat: group });
  expect(await done('pin', { message_id: id })).toEqual({ pinned: true, chatId, messageId: String(id) });
  expect(now().pinned).toEqual([id]);
  await done('unpin', { message_id: String(id), chat_id: group });
  expect(now().pinned).toEqual([]);
});

test('polls and stickers are sent to the topic of the endpoint', async () => {
  const { telegram, done } = await ready();
  const topic = telegram.chats.addTopic(group, 'Lunch');
  const poll = await done('poll', { question: 'Where?', options: ['Here', 'There'] }, String(topic));
  await done('sticker', { sticker_id: telegram.chats.addSticker(new Uint8Array(3)) }, String(topic));
  expect(telegram.chats.said(group)).toMatchObject([
    { messageId: Number(poll['messageId']), poll: ['Here', 'There'], text: 'Where?', threadId: topic },
    { file: { kind: 'sticker' }, threadId: topic },
  ]);
});

test('the group is described and changed', async () => {
  const { telegram, done, group: now } = await ready();
  expect(await done('set_title', { title: 'Laboratory' })).toMatchObject({ title: 'Laboratory' });
  await done('set_description', { description: 'We try things' });
  expect(now()).toMatchObject({ title: 'Laboratory', description: 'We try things' });
  expect(await done('chat_info')).toEqual({
    id: chatId,
    type: 'supergroup',
    title: 'Laboratory',
    username: null,
    description: 'We try things',
    isForum: true,
  });
  expect(await done('member_count')).toEqual({ chatId, count: 3 });
  expect(await done('get_admins')).toEqual({
    chatId,
    admins: [
      { userId: '1001', name: 'Ada Lovelace', username: 'ada_l', isBot: false, status: 'creator' },
      { userId: String(telegram.bot.id), name: 'Gate', username: 'gate_test_bot', isBot: true, status: 'administrator' },
    ],
  });
});

test('people are promoted, banned and unbanned, and unbanning removes no member', async () => {
  const { done, group: now } = await ready();
  const member = () => now().members.find(({ id }) => id === eve.id);
  await done('promote', { user_id: eve.id });
  expect(member()).toMatchObject({ status: 'administrator', permissions: ['can_manage_chat'] });
  await done('promote', { user_id: String(eve.id), rights: { can_pin_messages: true, can_invite_users: false } });
  expect(member()).toMatchObject({ status: 'administrator', permissions: ['can_pin_messages'] });
  await done('promote', { user_id: eve.id, rights: {} });
  expect(member()?.status).toBe('member');
  await done('unban', { user_id: eve.id });
  expect(member()?.status).toBe('member');
  expect(await done('ban', { user_id: eve.id })).toEqual({ banned: true, chatId, userId: '1002' });
  expect(member()?.status).toBe('kicked');
  await done('unban', { user_id: eve.id });
  expect(member()?.status).toBe('left');
});

test('topics are created, changed, closed and opened', async () => {
  const { done, act, group: now } = await ready();
  const { threadId: thread } = await done('createForumTopic', { name: 'Plans', icon_color: 7_322_096 });
  const topic = () => now().topics.find(({ id }) => String(id) === thread);
  expect(topic()).toMatchObject({ name: 'Plans', isClosed: false });
  await done('editForumTopic', { message_thread_id: thread, name: 'Old plans' });
  await done('closeForumTopic', { message_thread_id: Number(thread) }, String(thread));
  expect(topic()).toMatchObject({ name: 'Old plans', isClosed: true });
  await done('reopenForumTopic', { message_thread_id: thread });
  expect(topic()?.isClosed).toBe(false);
  expect(await act('createForumTopic', { name: 'x', icon_color: 1 })).toMatchObject({ is: 'failed', kind: 'invalid' });
});

test('typing is shown in the topic of the endpoint', async () => {
  const { telegram, done } = await ready();
  const topic = telegram.chats.addTopic(group, 'Lunch');
  expect(await done('sendTyping', {}, String(topic))).toEqual({ typing: true, chatId });
  expect(telegram.chats.typing).toEqual([[group, topic]]);
});

test('an action reaches no chat and no topic but those of its endpoint', async () => {
  const { telegram, act } = await ready();
  telegram.chats.say(ada, 'x');
  for (const [name, params] of [
    ['pin', { chat_id: ada.id, message_id: 1 }],
    ['set_title', { chat_id: '-77', title: 'x' }],
    ['closeForumTopic', { message_thread_id: 9 }],
  ] as const)
    expect(await act(name, params, '8')).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(telegram.calls).toEqual([]);
});

test.each([
  ['nothing', {}],
  ['constructor', {}],
  ['pin', { message_id: 'x' }],
  ['poll', { question: 'x', options: ['one'] }],
  ['promote', { user_id: 1, rights: { can_rule: true } }],
  ['ban', { user_id: 1, until: 5 }],
])('%s with %o is refused before it is tried', async (name, params) => {
  const { telegram, act } = await ready();
  expect(await act(name, params)).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(telegram.calls).toEqual([]);
});

test('what Telegram refuses, and what is not known, are distinguished', async () => {
  const { telegram, act } = await ready('member');
  const id = telegram.chats.say(ada, 'x', { chat: group });
  expect(await act('pin', { message_id: id })).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await act('pin', { message_id: 9_999 })).toMatchObject({ is: 'failed', kind: 'not_found' });
  telegram.fail('getChatMemberCount', 'cutAfter', { code: 500, description: 'Internal Server Error' }, { code: 429, description: '', retryAfter: 2 });
  expect(await act('member_count')).toMatchObject({ is: 'failed', kind: 'unavailable' });
  expect(await act('member_count')).toMatchObject({ is: 'failed', kind: 'unavailable' });
  expect(await act('member_count')).toMatchObject({ is: 'failed', kind: 'rate_limited', retryAfterMs: 2_000 });
  telegram.fail('sendPoll', 'cutAfter');
  expect(await act('poll', { question: 'x', options: ['one', 'two'] })).toMatchObject({ is: 'failed', kind: 'ambiguous' });
});
