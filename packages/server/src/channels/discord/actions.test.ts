import { discordActions } from '@gatehouse/contract';
import { afterEach, expect, test } from 'vitest';
import { discord } from './platform.ts';
import { startRig, type Rig } from './testing.ts';

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig[Symbol.asyncDispose]();
});
const signal = new AbortController().signal;
const role = '12345678901234567';

async function start() {
  const rig = await startRig();
  rigs.push(rig);
  const { fake } = rig;
  const ada = fake.person('ada');
  const guild = fake.guild('lab');
  const channel = fake.channel(guild, 'general');
  const messageId = fake.write(ada, channel, 'hello');
  const wire = rig.open();
  const place = { conversationId: channel.id };
  /** Runs an action, and checks its result against the contract. */
  const act = async (name: keyof typeof discordActions, params: object = {}, at: { conversationId: string; threadId?: string } = place) => {
    const ended = await wire.adapter.action!(name, { ...params }, at, { signal });
    if (ended.is === 'done') expect(discordActions[name].result().safeParse(ended.value).error).toBeUndefined();
    return ended.is === 'done' ? ended.value : ended;
  };
  return { ...rig, ada, guild, channel, messageId, wire, act };
}

test('every action is offered, and none is without a row', () => {
  expect(discord.capabilities.actions).toEqual(Object.keys(discordActions));
  expect(Object.entries(discordActions).flatMap(([name, { risk }]) => (risk === 'destructive' ? [name] : []))).toEqual([
    'kick',
    'ban',
    'role_remove',
    'channelDelete',
  ]);
});

test('messages are pinned and unpinned', async () => {
  const { fake, channel, messageId, act } = await start();
  expect(await act('pin', { message_id: messageId })).toEqual({ pinned: true, channelId: channel.id, messageId });
  expect(fake.shown(channel)[0]?.isPinned).toBe(true);
  expect(await act('unpin', { channel_id: channel.id, message_id: messageId })).toEqual({ unpinned: true, channelId: channel.id, messageId });
  expect(fake.shown(channel)[0]?.isPinned).toBe(false);
  expect(await act('pin', { message_id: role })).toMatchObject({ is: 'failed', kind: 'not_found' });
});

test('members are administered, with a reason for the audit log', async () => {
  const { fake, ada, guild, act } = await start();
  const member = { guild_id: guild.id, user_id: ada.id };
  const ids = { guildId: guild.id, userId: ada.id };
  expect(await act('role_add', { ...member, role_id: role })).toEqual({ roleAdded: true, ...ids, roleId: role });
  expect(await act('role_remove', { ...member, role_id: role })).toEqual({ roleRemoved: true, ...ids, roleId: role });
  expect(await act('kick', { ...member, reason: 'spam – über' })).toEqual({ kicked: true, ...ids });
  expect(fake.rest.requests.at(-1)).toMatchObject({ reason: 'spam – über' });
  expect(await act('kick', member)).toMatchObject({ is: 'failed', kind: 'not_found' });
  expect(await act('ban', { ...member, delete_message_days: 2 })).toEqual({ banned: true, ...ids });
  expect(fake.rest.requests.at(-1)?.body).toEqual({ delete_message_seconds: 172_800 });
  expect(await act('unban', member)).toEqual({ unbanned: true, ...ids });
  expect(await act('unban', member)).toMatchObject({ is: 'failed', kind: 'not_found' });
});

test('channels are described, changed, created, moved and deleted', async () => {
  const { fake, guild, channel, act } = await start();
  expect(await act('set_topic', { topic: 'News' })).toEqual({ topicSet: true, channelId: channel.id });
  expect(await act('set_slowmode', { seconds: 30 })).toEqual({ slowmodeSet: true, channelId: channel.id, seconds: 30 });
  expect(channel).toMatchObject({ topic: 'News', rate_limit_per_user: 30 });
  expect(await act('channel_info')).toEqual({
    channel: { id: channel.id, type: 0, name: 'general', topic: 'News', guildId: guild.id, parentId: null },
  });
  expect(await act('guild_info', { guild_id: guild.id })).toMatchObject({ guild: { id: guild.id, name: 'lab', memberCount: 1 } });
  const category = await act('channelCreate', { guild_id: guild.id, name: 'More', type: 'category' });
  const parent_id = 'channelId' in category ? category.channelId : '';
  const created = await act('channelCreate', { guild_id: guild.id, name: 'extra', parent_id, topic: 't' });
  const channel_id = 'channelId' in created ? String(created.channelId) : '';
  expect(await act('channelEdit', { channel_id, name: 'renamed' })).toEqual({ edited: true, channelId: channel_id });
  expect(await act('channelMove', { guild_id: guild.id, channel_id, position: 3 })).toEqual({ moved: true, channelId: channel_id });
  expect(await act('channel_info', {}, { conversationId: channel_id })).toMatchObject({ channel: { name: 'renamed', parentId: parent_id } });
  expect(await act('channelDelete', { channel_id })).toEqual({ deleted: true, channelId: channel_id });
  expect(await act('channel_info', {}, { conversationId: channel_id })).toMatchObject({ is: 'failed', kind: 'not_found' });
  expect(fake.rest.requests.at(-1)?.method).toBe('GET');
});

test('polls and threads', async () => {
  const { fake, channel, messageId, act } = await start();
  const polled = await act('poll', { question: 'Lunch?', options: ['soup', 'salad'] });
  expect(polled).toMatchObject({ polled: true, channelId: channel.id });
  expect(fake.shown(channel).at(-1)).toMatchObject({ poll: 'Lunch? soup/salad', author: 'gate' });
  const created = await act('threadCreate', { name: 'side' });
  const threadId = 'threadId' in created ? String(created.threadId) : '';
  expect(await act('threadCreate', { name: 'on it', message_id: messageId })).toMatchObject({ created: true });
  expect(await act('threadList')).toEqual({
    threads: [
      { id: threadId, name: 'side', parentId: channel.id },
      { id: expect.any(String), name: 'on it', parentId: channel.id },
    ],
  });
  expect(await act('threadReply', { thread_id: threadId, text: '@everyone look' })).toMatchObject({ replied: true, threadId });
  expect(fake.shown(threadId)).toMatchObject([{ content: '@everyone look', notifies: [] }]);
  expect(await act('sendTyping', {}, { conversationId: channel.id, threadId })).toEqual({ typing: true });
  expect(fake.rest.typing).toEqual([threadId]);
});

test('what the bot shows that it is doing goes over the gateway, and comes back with a new session', async () => {
  const { fake, wire, act } = await start();
  expect(await act('setPresence', { status_text: 'chess' })).toMatchObject({ is: 'failed', kind: 'unavailable' });
  void wire.run();
  await expect.poll(() => wire.names).toHaveLength(1);
  expect(fake.gateway.presences).toEqual([]);
  expect(await act('setPresence', { status_text: 'films', activity_type: 'watching' })).toEqual({ presenceSet: true });
  await expect.poll(() => fake.gateway.presences.at(-1)).toMatchObject({ activities: [{ name: 'films', type: 3 }] });
  fake.gateway.forgetSessions();
  fake.gateway.cut();
  await expect.poll(() => fake.gateway.presences).toHaveLength(2);
  expect(fake.gateway.presences[1]).toMatchObject({ activities: [{ name: 'films', type: 3 }] });
  await expect.poll(() => wire.names).toHaveLength(2);
  expect(await act('setPresence', {})).toEqual({ presenceSet: true });
  await expect.poll(() => fake.gateway.presences.at(-1)).toMatchObject({ activities: [] });
});

test('ids of another channel or guild are refused before anything changes', async () => {
  const { fake, ada, messageId, guild, channel, act } = await start();
  const elsewhere = fake.guild('elsewhere');
  const other = fake.channel(elsewhere, 'other');
  const sibling = fake.channel(guild, 'sibling');
  const thread = fake.thread(sibling, 'theirs');
  const refused = [
    await act('pin', { channel_id: sibling.id, message_id: messageId }),
    await act('set_topic', { channel_id: other.id, topic: 'x' }),
    await act('poll', { channel_id: sibling.id, question: 'x', options: ['y'] }),
    await act('threadReply', { thread_id: thread.id, text: 'x' }),
    await act('threadReply', { thread_id: channel.id, text: 'x' }),
    await act('kick', { guild_id: elsewhere.id, user_id: ada.id }),
    await act('guild_info', { guild_id: elsewhere.id }),
    await act('channelDelete', { channel_id: other.id }),
    await act('channelEdit', { channel_id: other.id, name: 'x' }),
    await act('channelMove', { guild_id: guild.id, channel_id: other.id, position: 1 }),
    await act('channelCreate', { guild_id: guild.id, name: 'x', parent_id: other.id }),
    await act('guild_info', { guild_id: guild.id }, { conversationId: fake.directChannel(ada).id }),
  ];
  for (const one of refused) expect(one).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(new Set(fake.rest.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('an action of another platform, and parameters of another form, are refused', async () => {
  const { wire, channel, act } = await start();
  const place = { conversationId: channel.id };
  for (const name of ['sticker', 'constructor', '__proto__'])
    expect(await wire.adapter.action!(name, {}, place, { signal })).toEqual({
      is: 'failed',
      kind: 'invalid',
      text: `Unsupported action: ${name} on discord`,
    });
  expect(await act('set_slowmode', { seconds: -1 })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await act('pin', { message_id: '1/../2' })).toMatchObject({ is: 'failed', kind: 'invalid' });
});

test('a change whose answer is lost is ambiguous', async () => {
  const { fake, channel, act } = await start();
  fake.rest.fail(/PATCH/, 'cutAfter');
  expect(await act('set_topic', { topic: 'x' })).toMatchObject({ is: 'failed', kind: 'ambiguous' });
  expect(channel.topic).toBe('x');
});
