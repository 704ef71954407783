import type { CallParams } from './fake-telegram-calls.ts';
import { bad, type Message, type TelegramPerson, userOf } from './fake-telegram-messages.ts';

export const iconColours = [7_322_096, 16_766_590, 13_338_331, 9_367_192, 16_749_490, 16_478_047];

export interface Member {
  readonly user: TelegramPerson;
  status: 'creator' | 'administrator' | 'member' | 'kicked' | 'left';
  permissions: readonly string[];
}

export interface Chat {
  readonly id: number;
  readonly type: 'private' | 'group' | 'supergroup';
  title: string;
  description: string;
  readonly isForum: boolean;
  readonly members: Map<number, Member>;
  readonly messages: Map<number, Message>;
  readonly topics: Map<number, { name: string; isClosed: boolean }>;
  readonly pinned: Set<number>;
  isBlocked: boolean;
  movedTo: number | undefined;
  lastId: number;
}

interface Us {
  readonly bot: TelegramPerson;
  chatOf(): object;
  addTopic(name: string): number;
}

export const isAdmin = (chat: Chat, bot: TelegramPerson): boolean => chat.members.get(bot.id)?.status === 'administrator';

const present = ({ members }: Chat): Member[] => [...members.values()].filter(({ status }) => status !== 'kicked' && status !== 'left');

/** Carries out a call that changes or describes a group: pins, members, topics, title. */
export function callGroup(chat: Chat, method: string, params: CallParams, us: Us): unknown {
  const text = (name: string) => (typeof params[name] === 'string' ? params[name] : undefined);
  const number = (name: string) => (typeof params[name] === 'number' ? params[name] : undefined);
  const id = number('message_id') ?? 0;
  const thread = number('message_thread_id');
  const user = number('user_id') ?? 0;

  function needAdmin(purpose: string): void {
    if (chat.type !== 'private' && !isAdmin(chat, us.bot)) throw bad(`not enough rights to ${purpose}`);
  }

  function setMember(who: number, status: Member['status'], permissions: readonly string[] = []): true {
    needAdmin('restrict/unrestrict chat member');
    const member = chat.members.get(who);
    if (member === undefined || member.status === 'left') throw bad('PARTICIPANT_ID_INVALID');
    if (member.status === 'creator') throw bad("can't remove chat owner");
    Object.assign(member, { status, permissions });
    return true;
  }

  function unban(who: number, onlyIfBanned: boolean): true {
    const member = chat.members.get(who);
    if (member?.status === 'kicked' || (!onlyIfBanned && member !== undefined)) setMember(who, 'left');
    return true;
  }

  function forum(): Chat {
    needAdmin('create a topic');
    if (!chat.isForum) throw bad('the chat is not a forum');
    return chat;
  }

  function topicOf(which: number) {
    const topic = forum().topics.get(which);
    if (topic === undefined) throw bad('message thread not found');
    return topic;
  }

  switch (method) {
    case 'pinChatMessage':
      if (!chat.messages.has(id)) throw bad('message to pin not found');
      needAdmin('manage pinned messages in the chat');
      chat.pinned.add(id);
      return true;
    case 'unpinChatMessage':
      needAdmin('manage pinned messages in the chat');
      if (!chat.pinned.delete(id)) throw bad('message to unpin not found');
      return true;
    case 'getChat': {
      const { description, isForum } = chat;
      return {
        ...us.chatOf(),
        ...(description !== '' && { description }),
        ...(isForum && { is_forum: true }),
        accent_color_id: 0,
        max_reaction_count: 11,
      };
    }
    case 'getChatMemberCount':
      return present(chat).length;
    case 'getChatAdministrators':
      return present(chat)
        .filter(({ status }) => status !== 'member')
        .map(({ user: one, status }) => ({ user: userOf(one), status, is_anonymous: false }));
    case 'setChatTitle':
      needAdmin('change chat title');
      if (chat.title === text('title')) throw bad('chat title is not modified');
      chat.title = text('title') ?? '';
      return true;
    case 'setChatDescription':
      needAdmin('set chat description');
      if (chat.description === (text('description') ?? '')) throw bad('chat description is not modified');
      chat.description = text('description') ?? '';
      return true;
    case 'banChatMember':
      return setMember(user, 'kicked');
    case 'unbanChatMember':
      return unban(user, params['only_if_banned'] === true);
    case 'promoteChatMember': {
      const permissions = Object.keys(params).filter((name) => name.startsWith('can_') && params[name] === true);
      return setMember(user, permissions.length > 0 ? 'administrator' : 'member', permissions);
    }
    case 'createForumTopic': {
      forum();
      const colour = number('icon_color') ?? iconColours[0];
      if (!iconColours.includes(colour ?? 0)) throw bad('TOPIC_ICON_COLOR_INVALID');
      return { message_thread_id: us.addTopic(text('name') ?? ''), name: text('name'), icon_color: colour };
    }
    case 'editForumTopic': {
      const topic = topicOf(thread ?? 0);
      const name = text('name') ?? topic.name;
      if (name === topic.name && text('icon_custom_emoji_id') === undefined) throw bad('TOPIC_NOT_MODIFIED');
      topic.name = name;
      return true;
    }
    case 'closeForumTopic':
    case 'reopenForumTopic': {
      const topic = topicOf(thread ?? 0);
      const isClosed = method === 'closeForumTopic';
      if (topic.isClosed === isClosed) throw bad('TOPIC_NOT_MODIFIED');
      topic.isClosed = isClosed;
      return true;
    }
    default:
      throw new Error(`The fake does not carry out ${method}`);
  }
}
