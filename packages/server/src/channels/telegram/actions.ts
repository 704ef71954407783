import { telegramActions } from '@gatehouse/contract';
import * as z from 'zod';
import type { Act, Place } from '../port.ts';
import type { BotApi } from './api.ts';
import { nameOf } from './message.ts';
import { failureOf } from './outcome.ts';
import { idOf, targetOf } from './place.ts';

type Rows = typeof telegramActions;
type Name = keyof Rows;
type Result<Key extends Name> = z.output<ReturnType<Rows[Key]['result']>>;
type Params<Key extends Name> = z.output<ReturnType<Rows[Key]['params']>>;

interface Context {
  readonly api: BotApi;
  readonly signal: AbortSignal;
  readonly chat: number;
  readonly thread: number | undefined;
}

type Run<Key extends Name> = (context: Context, params: Params<Key>) => Promise<Result<Key>>;

const chatOf = ({ chat }: Context) => ({ chatId: String(chat) });
const threadOf = ({ thread }: Context) => (thread === undefined ? {} : { message_thread_id: thread });
const allPermissions = telegramActions.promote.params().shape.rights.unwrap().keyType.options;

const runs: { readonly [Key in Name]: Run<Key> } = {
  async pin(at, { message_id: id }) {
    await at.api.pinChatMessage({ chat_id: at.chat, message_id: Number(id), disable_notification: true }, at.signal);
    return { pinned: true, ...chatOf(at), messageId: String(id) };
  },
  async unpin(at, { message_id: id }) {
    await at.api.unpinChatMessage({ chat_id: at.chat, message_id: Number(id) }, at.signal);
    return { unpinned: true, ...chatOf(at), messageId: String(id) };
  },
  async poll(at, { question, options }) {
    const payload = { chat_id: at.chat, ...threadOf(at), question, options: options.map((text) => ({ text })) };
    const { message_id: id, poll } = await at.api.sendPoll(payload, at.signal);
    return { sent: true, ...chatOf(at), messageId: String(id), pollId: poll.id };
  },
  async sticker(at, { sticker_id: sticker }) {
    const { message_id: id } = await at.api.sendSticker({ chat_id: at.chat, ...threadOf(at), sticker }, at.signal);
    return { sent: true, ...chatOf(at), messageId: String(id) };
  },
  async chat_info(at) {
    const { id, type, title, username, description, is_forum: isForum } = await at.api.getChat({ chat_id: at.chat }, at.signal);
    return {
      id: String(id),
      type,
      title: title ?? null,
      username: username ?? null,
      description: description ?? null,
      isForum: isForum === true,
    };
  },
  async member_count(at) {
    return { ...chatOf(at), count: await at.api.getChatMemberCount({ chat_id: at.chat }, at.signal) };
  },
  async get_admins(at) {
    const members = await at.api.getChatAdministrators({ chat_id: at.chat }, at.signal);
    const admins = members.map(({ user, status }) => ({
      userId: String(user.id),
      name: nameOf(user),
      username: user.username ?? null,
      isBot: user.is_bot,
      status,
    }));
    return { ...chatOf(at), admins };
  },
  async set_title(at, { title }) {
    await at.api.setChatTitle({ chat_id: at.chat, title }, at.signal);
    return { titleSet: true, ...chatOf(at), title };
  },
  async set_description(at, { description }) {
    await at.api.setChatDescription({ chat_id: at.chat, description }, at.signal);
    return { descriptionSet: true, ...chatOf(at), description };
  },
  async ban(at, { user_id: id }) {
    await at.api.banChatMember({ chat_id: at.chat, user_id: Number(id) }, at.signal);
    return { banned: true, ...chatOf(at), userId: String(id) };
  },
  async unban(at, { user_id: id }) {
    // Otherwise it removes somebody who is a member.
    await at.api.unbanChatMember({ chat_id: at.chat, user_id: Number(id), only_if_banned: true }, at.signal);
    return { unbanned: true, ...chatOf(at), userId: String(id) };
  },
  async promote(at, { user_id: id, rights: given }) {
    const all = Object.fromEntries(allPermissions.map((name) => [name, given[name] ?? false]));
    await at.api.promoteChatMember({ chat_id: at.chat, user_id: Number(id), ...all }, at.signal);
    return { promoted: true, ...chatOf(at), userId: String(id) };
  },
  async createForumTopic(at, { name, icon_color: color, icon_custom_emoji_id: icon }) {
    const payload = { chat_id: at.chat, name, ...(color !== undefined && { icon_color: color as never }), ...iconOf(icon) };
    const topic = await at.api.createForumTopic(payload, at.signal);
    return { created: true, ...chatOf(at), threadId: String(topic.message_thread_id), name: topic.name };
  },
  async editForumTopic(at, { message_thread_id: thread, name, icon_custom_emoji_id: icon }) {
    const payload = { chat_id: at.chat, message_thread_id: Number(thread), ...(name !== undefined && { name }), ...iconOf(icon) };
    await at.api.editForumTopic(payload, at.signal);
    return { edited: true, ...chatOf(at), threadId: String(thread) };
  },
  async closeForumTopic(at, { message_thread_id: thread }) {
    await at.api.closeForumTopic({ chat_id: at.chat, message_thread_id: Number(thread) }, at.signal);
    return { closed: true, ...chatOf(at), threadId: String(thread) };
  },
  async reopenForumTopic(at, { message_thread_id: thread }) {
    await at.api.reopenForumTopic({ chat_id: at.chat, message_thread_id: Number(thread) }, at.signal);
    return { reopened: true, ...chatOf(at), threadId: String(thread) };
  },
  async sendTyping(at) {
    await at.api.sendChatAction({ chat_id: at.chat, ...threadOf(at), action: 'typing' }, at.signal);
    return { typing: true, ...chatOf(at) };
  },
};

const iconOf = (icon: string | undefined) => (icon === undefined ? {} : { icon_custom_emoji_id: icon });

const isName = (name: string): name is Name => Object.hasOwn(runs, name);

/** Carries out an action of `telegram.action` in the chat of `place`, and in no other one. */
export async function runAction(
  api: BotApi,
  name: string,
  params: Readonly<Record<string, unknown>>,
  place: Place,
  signal: AbortSignal,
): Promise<Act<Readonly<Record<string, unknown>>>> {
  if (!isName(name)) return { is: 'failed', kind: 'invalid', text: `Unsupported action: ${name} on telegram` };
  return run(name, api, params, place, signal);
}

async function run<Key extends Name>(
  name: Key,
  api: BotApi,
  given: Readonly<Record<string, unknown>>,
  place: Place,
  signal: AbortSignal,
): Promise<Act<Readonly<Record<string, unknown>>>> {
  const target = targetOf(place);
  if (target === undefined) return { is: 'failed', kind: 'invalid', text: 'Not a chat of Telegram' };
  const parsed = telegramActions[name].params().safeParse(given);
  if (!parsed.success) return { is: 'failed', kind: 'invalid', text: z.prettifyError(parsed.error) };
  const { chat_id: chat, message_thread_id: thread } = parsed.data as {
    readonly chat_id?: string | number;
    readonly message_thread_id?: string | number;
  };
  if (chat !== undefined && idOf(String(chat)) !== target.chat_id)
    return { is: 'failed', kind: 'denied', text: 'chat_id is not the chat of the endpoint' };
  if (thread !== undefined && target.message_thread_id !== undefined && idOf(String(thread)) !== target.message_thread_id)
    return { is: 'failed', kind: 'denied', text: 'message_thread_id is not the topic of the endpoint' };
  try {
    const context = { api, signal, chat: target.chat_id, thread: target.message_thread_id };
    return { is: 'done', value: await runs[name](context, parsed.data as Params<Key>) };
  } catch (error) {
    return failureOf(error, telegramActions[name].risk === 'read');
  }
}
