import { type CallParams, isFile, type SentFile } from './fake-telegram-calls.ts';
import { callGroup, type Chat, iconColours, isAdmin, type Member } from './fake-telegram-groups.ts';
import {
  bad,
  fileFields,
  isImage,
  keyboardOf,
  type Message,
  parsed,
  Refused,
  type ShownMessage,
  type TelegramFileKind,
  type TelegramPerson,
  userOf,
} from './fake-telegram-messages.ts';

export interface TelegramGroup {
  /** Negative. */
  readonly id: number;
  readonly title: string;
  readonly isForum?: boolean;
  readonly members: readonly TelegramPerson[];
  /** The first member is the owner. */
  readonly bot?: 'member' | 'administrator';
}

const maxText = 4_096;
const maxCaption = 1_024;
const maxPhoto = 10_485_760;
const maxDownload = 20_971_520;
const reactions =
  '👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 😈 😴 😭 🤓 👻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 😡'.split(
    ' ',
  );
const actions = ['typing', 'upload_photo', 'upload_document', 'upload_voice', 'upload_video', 'record_voice', 'choose_sticker'];
const fileKinds: Readonly<Record<string, TelegramFileKind>> = {
  sendPhoto: 'photo',
  sendDocument: 'document',
  sendVoice: 'voice',
  sendAudio: 'audio',
  sendVideo: 'video',
  sendSticker: 'sticker',
};

export interface SayOptions {
  /** The group; the direct chat with the person when absent. */
  readonly chat?: number;
  readonly thread?: number;
  readonly replyTo?: number;
  readonly file?: { readonly kind: TelegramFileKind; readonly name?: string; readonly type?: string; readonly bytes: Uint8Array };
  /** Writes as the group, as anonymous administrators do, or as a channel. */
  readonly as?: { readonly id: number; readonly title: string; readonly type: 'supergroup' | 'channel' };
  /** Entities in addition to those that Telegram finds in a text. */
  readonly entities?: readonly object[];
  /** Further fields of the message. */
  readonly fields?: object;
}

export interface ChatsOptions {
  readonly bot: TelegramPerson & { readonly username: string };
  /** Privacy mode is off. */
  readonly seesAll: boolean;
  readonly now: () => number;
  readonly push: (kind: string, update: object) => void;
}

/** The chats of a fake Telegram: what the bot's methods do, what people do, and what everybody sees. */
export class TelegramChats {
  readonly #options: ChatsOptions;
  readonly #chats = new Map<number, Chat>();
  readonly #files = new Map<string, { readonly path: string; readonly kind: TelegramFileKind; readonly name: string; readonly bytes: Uint8Array }>();
  readonly #presses = new Map<string, boolean>();
  /** Chats and topics in which the bot was seen typing. */
  readonly typing: (readonly [number, number | undefined])[] = [];
  #ids = 0;

  constructor(options: ChatsOptions) {
    this.#options = options;
  }

  addGroup({ id, title, isForum = false, members, bot = 'member' }: TelegramGroup): void {
    const { bot: us } = this.#options;
    const all = members.map((user, index): Member => ({ user, status: index === 0 ? 'creator' : 'member', permissions: [] }));
    this.#addChat(id, id < -1_000_000_000 ? 'supergroup' : 'group', title, isForum, [...all, { user: us, status: bot, permissions: [] }]);
  }

  addTopic(chat: number, name: string, by?: TelegramPerson): number {
    const { topics } = this.#chat(chat);
    const id = this.#nextId(chat);
    topics.set(id, { name, isClosed: false });
    const creator = by ?? this.#options.bot;
    this.#store(chat, { messageId: id, from: creator.id, threadId: id, extra: { forum_topic_created: { name, icon_color: iconColours[0] } } });
    return id;
  }

  /** A group becomes a supergroup. */
  migrate(from: number, to: number): void {
    const chat = this.#chat(from);
    this.#addChat(to, 'supergroup', chat.title, false, [...chat.members.values()]);
    chat.movedTo = to;
  }

  /** A person blocks the bot, or a group removes it. */
  block(chat: number, isBlocked = true): void {
    this.#chat(chat).isBlocked = isBlocked;
  }

  /** Everybody's messages of a chat, without deleted ones. */
  shown(chat: number): readonly ShownMessage[] {
    return [...(this.#chats.get(chat)?.messages.values() ?? [])]
      .filter(({ extra }) => !('forum_topic_created' in extra))
      .map(({ keyboard, date: _date, extra: _extra, ...message }) => ({ ...message, buttons: keyboard.map((row) => row.map(({ text }) => text)) }));
  }

  /** The messages of the bot in a chat. */
  said(chat: number): readonly ShownMessage[] {
    return this.shown(chat).filter(({ from }) => from === this.#options.bot.id);
  }

  group(chat: number) {
    const { title, description, pinned, topics, members } = this.#chat(chat);
    return {
      title,
      description,
      pinned: [...pinned],
      topics: [...topics].map(([id, { name, isClosed }]) => ({ id, name, isClosed })),
      members: [...members.values()].map(({ user, status, permissions }) => ({ id: user.id, status, permissions })),
    };
  }

  isAnswered(press: string): boolean {
    return this.#presses.get(press) === true;
  }

  /** A person writes; returns the id of the message. */
  say(from: TelegramPerson, text: string, options: SayOptions = {}): number {
    const chat = options.chat ?? this.#direct(from);
    const { file, thread, replyTo, as, fields } = options;
    const messageId = this.#nextId(chat);
    const stored = file && this.#addFile(file.kind, file.name ?? '', file.bytes);
    const entities = [...this.#found(text), ...(options.entities ?? [])];
    const sender =
      as === undefined
        ? from
        : as.type === 'channel'
          ? { id: 136_817_688, is_bot: true, first_name: 'Channel', username: 'Channel_Bot' }
          : { id: 1_087_968_824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' };
    const extra = {
      from: userOf(sender),
      ...(as !== undefined && { sender_chat: as }),
      ...(stored && fileFields(stored.id, file)),
      ...(file === undefined ? text !== '' && { text, entities } : text !== '' && { caption: text, caption_entities: entities }),
      ...fields,
    };
    this.#store(chat, { messageId, from: from.id, threadId: thread, text, replyTo, extra, ...(stored && { file: stored.file }) });
    if (this.#reaches(chat, messageId, text)) this.#options.push('message', this.#apiOf(chat, messageId));
    return messageId;
  }

  /** A sticker that Telegram has; returns its file id. */
  addSticker(bytes: Uint8Array): string {
    return this.#addFile('sticker', 'sticker.webp', bytes).id;
  }

  /** A person changes a message. */
  change(chat: number, messageId: number, text: string): void {
    const message = this.#message(chat, messageId, 'edit');
    const extra = { ...message.extra, text, entities: this.#found(text), edit_date: this.#seconds() };
    this.#chat(chat).messages.set(messageId, { ...message, text, extra, isEdited: true });
    if (this.#reaches(chat, messageId, text)) this.#options.push('edited_message', this.#apiOf(chat, messageId));
  }

  /** A person presses a button below a message; returns the id of the press. */
  press(by: TelegramPerson, chat: number, messageId: number, label: string): string {
    const message = this.#message(chat, messageId, 'press');
    const button = message.keyboard.flat().find(({ text }) => text === label);
    if (button === undefined) throw new Error(`No button ${label}`);
    const id = String(7_000_000 + (this.#ids += 1));
    this.#presses.set(id, false);
    this.#options.push('callback_query', {
      id,
      from: userOf(by),
      message: this.#apiOf(chat, messageId),
      chat_instance: '1',
      data: button.callback_data,
    });
    return id;
  }

  /** Returns a file by its path. */
  fileAt(path: string): Uint8Array | undefined {
    return [...this.#files.values()].find((file) => file.path === path)?.bytes;
  }

  /** Carries out a call of the bot. */
  call(method: string, params: CallParams): unknown {
    const text = (name: string) => (typeof params[name] === 'string' ? params[name] : undefined);
    const number = (name: string) => (typeof params[name] === 'number' ? params[name] : undefined);
    const chat = number('chat_id') ?? 0;
    const id = number('message_id') ?? 0;
    const thread = number('message_thread_id');
    switch (method) {
      case 'sendMessage':
        return this.#sendText(chat, params);
      case 'sendPhoto':
      case 'sendDocument':
      case 'sendVoice':
      case 'sendAudio':
      case 'sendVideo':
      case 'sendSticker':
        return this.#sendFile(chat, fileKinds[method] ?? 'document', params);
      case 'sendPoll':
        return this.#sendPoll(chat, params);
      case 'sendChatAction':
        this.#writable(chat, thread);
        if (!actions.includes(text('action') ?? '')) throw bad('wrong parameter action in request');
        this.typing.push([chat, thread]);
        return true;
      case 'editMessageText':
        return this.#edit(chat, id, params, false);
      case 'editMessageCaption':
        return this.#edit(chat, id, params, true);
      case 'deleteMessage': {
        const message = this.#message(chat, id, 'delete');
        if (message.from !== this.#options.bot.id && this.#chat(chat).type !== 'private' && !isAdmin(this.#chat(chat), this.#options.bot))
          throw bad("message can't be deleted");
        return this.#chat(chat).messages.delete(id);
      }
      case 'setMessageReaction':
        return this.#react(chat, id, (params['reaction'] ?? []) as readonly { readonly type?: string; readonly emoji?: string }[]);
      case 'answerCallbackQuery':
        if (!this.#presses.has(text('callback_query_id') ?? '')) throw bad('query is too old and response timeout expired or query ID is invalid');
        this.#presses.set(text('callback_query_id') ?? '', true);
        return true;
      case 'getFile':
        return this.#getFile(text('file_id') ?? '');
      default:
        return callGroup(this.#writable(chat), method, params, {
          bot: this.#options.bot,
          chatOf: () => this.#chatOf(chat),
          addTopic: (name) => this.addTopic(chat, name),
        });
    }
  }

  #sendText(chat: number, params: CallParams): object {
    const { text, entities } = parsed(params['text'], params['parse_mode']);
    if (text === '') throw bad('message text is empty');
    if (text.length > maxText) throw bad('message is too long');
    const preview = params['link_preview_options'] as { readonly is_disabled?: boolean } | undefined;
    return this.#send(chat, params, { text, entities, hasPreview: /https?:/.test(text) && preview?.is_disabled !== true, extra: { text, entities } });
  }

  #sendFile(chat: number, kind: TelegramFileKind, params: CallParams): object {
    const given = params[kind];
    const known = typeof given === 'string' ? this.#files.get(given) : undefined;
    if (!isFile(given) && known === undefined) throw bad('wrong file identifier/HTTP URL specified');
    const file: SentFile = isFile(given) ? given : (known as SentFile);
    if (kind === 'photo' && file.bytes.byteLength > maxPhoto) throw bad(`file of size ${file.bytes.byteLength} bytes is too big for a photo`);
    if (kind === 'photo' && !isImage(file.bytes)) throw bad('IMAGE_PROCESS_FAILED');
    const { text, entities } = parsed(params['caption'] ?? '', params['parse_mode']);
    if (text.length > maxCaption) throw bad('message caption is too long');
    this.#writable(chat, params['message_thread_id'] as number | undefined);
    const stored = this.#addFile(kind, file.name, file.bytes);
    const extra = { ...fileFields(stored.id, { kind, ...file }), ...(text !== '' && { caption: text, caption_entities: entities }) };
    return this.#send(chat, params, { text, entities, file: stored.file, extra });
  }

  #sendPoll(chat: number, params: CallParams): object {
    const options = (params['options'] as readonly { readonly text?: string }[]).map((one) => one.text ?? '');
    const question = String(params['question']);
    if (question === '' || question.length > 300) throw bad('poll question length must be between 1 and 300');
    if (options.length < 2 || options.length > 12 || options.some((one) => one === '' || one.length > 100)) throw bad('poll must have 2-12 options');
    const poll = { id: String((this.#ids += 1)), question, options: options.map((one) => ({ text: one, voter_count: 0 })), total_voter_count: 0 };
    return this.#send(chat, params, { text: question, poll: options, extra: { poll } });
  }

  #send(chat: number, params: CallParams, message: Partial<Message>): object {
    const thread = params['message_thread_id'] as number | undefined;
    const { messages } = this.#writable(chat, thread);
    const reply = params['reply_parameters'] as { readonly message_id: number; readonly allow_sending_without_reply?: boolean } | undefined;
    const isThere = reply !== undefined && messages.has(reply.message_id);
    if (reply !== undefined && !isThere && reply.allow_sending_without_reply !== true) throw bad('message to be replied not found');
    const keyboard = keyboardOf(params['reply_markup']);
    const messageId = this.#nextId(chat);
    const extra = { from: userOf(this.#options.bot), ...message.extra, ...(keyboard.length > 0 && { reply_markup: { inline_keyboard: keyboard } }) };
    this.#store(chat, {
      ...message,
      messageId,
      from: this.#options.bot.id,
      threadId: thread,
      keyboard,
      extra,
      ...(isThere && { replyTo: reply.message_id }),
    });
    return this.#apiOf(chat, messageId);
  }

  #edit(chat: number, id: number, params: CallParams, isCaption: boolean): object {
    this.#writable(chat);
    const message = this.#message(chat, id, 'edit');
    if (message.from !== this.#options.bot.id) throw bad("message can't be edited");
    if (!isCaption && message.file !== undefined) throw bad('there is no text in the message to edit');
    if (isCaption && message.file === undefined) throw bad('there is no caption in the message to edit');
    const { text, entities } = parsed(params[isCaption ? 'caption' : 'text'] ?? '', params['parse_mode']);
    if (!isCaption && text === '') throw bad('message text is empty');
    if (text.length > (isCaption ? maxCaption : maxText)) throw bad(isCaption ? 'message caption is too long' : 'message is too long');
    const keyboard = keyboardOf(params['reply_markup']);
    const same = JSON.stringify([text, entities, keyboard]) === JSON.stringify([message.text, message.entities, message.keyboard]);
    if (same)
      throw bad(
        'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
      );
    const shown = isCaption ? { caption: text, caption_entities: entities } : { text, entities };
    const extra = { ...message.extra, ...shown, edit_date: this.#seconds(), reply_markup: { inline_keyboard: keyboard } };
    this.#chat(chat).messages.set(id, { ...message, text, entities, keyboard, extra, isEdited: true });
    return this.#apiOf(chat, id);
  }

  #react(chat: number, id: number, wanted: readonly { readonly type?: string; readonly emoji?: string }[]): true {
    this.#writable(chat);
    const message = this.#message(chat, id, 'react');
    if (wanted.length > 1) throw bad('REACTIONS_TOO_MANY');
    if (wanted.some(({ type, emoji = '' }) => type !== 'emoji' || !reactions.includes(emoji))) throw bad('REACTION_INVALID');
    this.#chat(chat).messages.set(id, { ...message, reactions: wanted.map(({ emoji = '' }) => emoji) });
    return true;
  }

  #getFile(id: string): object {
    const file = this.#files.get(id);
    if (file === undefined) throw bad('invalid file_id');
    if (file.bytes.byteLength > maxDownload) throw bad('file is too big');
    return { file_id: id, file_unique_id: `u${id}`, file_size: file.bytes.byteLength, file_path: file.path };
  }

  #addChat(id: number, type: Chat['type'], title: string, isForum: boolean, members: readonly Member[]): void {
    this.#chats.set(id, {
      id,
      type,
      title,
      isForum,
      description: '',
      members: new Map(members.map((member) => [member.user.id, { ...member }])),
      messages: new Map(),
      topics: new Map(),
      pinned: new Set(),
      isBlocked: false,
      movedTo: undefined,
      lastId: Math.abs(id % 90),
    });
  }

  #direct(person: TelegramPerson): number {
    if (!this.#chats.has(person.id))
      this.#addChat(person.id, 'private', person.first_name, false, [{ user: person, status: 'member', permissions: [] }]);
    return person.id;
  }

  #chat(id: number): Chat {
    const chat = this.#chats.get(id);
    if (chat === undefined) throw bad('chat not found');
    return chat;
  }

  #writable(id: number, thread?: number): Chat {
    const chat = this.#chat(id);
    if (chat.movedTo !== undefined)
      throw new Refused(400, 'Bad Request: group chat was upgraded to a supergroup chat', { migrate_to_chat_id: chat.movedTo });
    if (chat.isBlocked)
      throw new Refused(
        403,
        chat.type === 'private' ? 'Forbidden: bot was blocked by the user' : `Forbidden: bot was kicked from the ${chat.type} chat`,
      );
    if (thread !== undefined) {
      const topic = chat.topics.get(thread);
      if (topic === undefined) throw bad('message thread not found');
      if (topic.isClosed && !isAdmin(chat, this.#options.bot)) throw bad('TOPIC_CLOSED');
    }
    return chat;
  }

  #message(chat: number, id: number, purpose: string): Message {
    const message = this.#chat(chat).messages.get(id);
    if (message === undefined) throw bad(`message to ${purpose} not found`);
    return message;
  }

  #nextId(chat: number): number {
    return (this.#chat(chat).lastId += 1);
  }

  #seconds(): number {
    return Math.floor(this.#options.now() / 1_000);
  }

  #store(chat: number, message: Partial<Message> & Pick<Message, 'messageId' | 'from'>): void {
    this.#chat(chat).messages.set(message.messageId, {
      threadId: undefined,
      text: '',
      entities: [],
      file: undefined,
      poll: undefined,
      replyTo: undefined,
      reactions: [],
      isEdited: false,
      hasPreview: false,
      date: this.#seconds(),
      keyboard: [],
      extra: {},
      ...message,
    });
  }

  #addFile(kind: TelegramFileKind, name: string, bytes: Uint8Array) {
    const id = `F-${kind}_${(this.#ids += 1)}`;
    const file = { path: `${kind}s/file_${this.#ids}.${name.split('.').at(-1) || 'dat'}`, kind, name, bytes };
    this.#files.set(id, file);
    return { id, file };
  }

  /** Returns the commands and mentions of a text. */
  #found(text: string): object[] {
    return [...text.matchAll(/(?<=^|\s)(\/\w+(?:@\w+)?|@\w{4,32})/g)].map((match) => ({
      type: match[0].startsWith('/') ? 'bot_command' : 'mention',
      offset: match.index,
      length: match[0].length,
    }));
  }

  /** Returns whether the bot gets a message: of a group, in privacy mode, only commands, messages that name it, and answers to its own. */
  #reaches(chat: number, id: number, text: string): boolean {
    const { bot, seesAll } = this.#options;
    const { type, messages, isBlocked } = this.#chat(chat);
    const message = this.#message(chat, id, 'read');
    if (isBlocked && type !== 'private') return false;
    if (type === 'private' || seesAll || isAdmin(this.#chat(chat), this.#options.bot)) return true;
    const answered = messages.get(message.replyTo ?? 0)?.from === bot.id;
    return answered || text.startsWith('/') || text.toLowerCase().includes(`@${bot.username.toLowerCase()}`);
  }

  #chatOf(id: number): object {
    const { type, title, isForum, members } = this.#chat(id);
    if (type !== 'private') return { id, type, title, ...(isForum && { is_forum: true }) };
    const { first_name, last_name, username } = [...members.values()][0]?.user ?? { first_name: title };
    return { id, type, first_name, ...(last_name !== undefined && { last_name }), ...(username !== undefined && { username }) };
  }

  #apiOf(chat: number, id: number): object {
    const { date, threadId, replyTo, extra } = this.#message(chat, id, 'read');
    // What answers nothing in a topic answers its creation.
    const answered = replyTo ?? threadId;
    const { messages } = this.#chat(chat);
    return {
      message_id: id,
      date,
      chat: this.#chatOf(chat),
      ...(threadId !== undefined && { message_thread_id: threadId, is_topic_message: true }),
      ...(answered !== undefined &&
        messages.has(answered) && {
          reply_to_message: {
            message_id: answered,
            date,
            chat: this.#chatOf(chat),
            from: userOf(this.#personOf(chat, messages.get(answered)?.from ?? 0)),
            ...messages.get(answered)?.extra,
          },
        }),
      ...extra,
    };
  }

  #personOf(chat: number, id: number): TelegramPerson {
    if (id === this.#options.bot.id) return this.#options.bot;
    return this.#chat(chat).members.get(id)?.user ?? { id, first_name: 'Somebody' };
  }
}
