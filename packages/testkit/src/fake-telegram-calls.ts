type Kind = 'chat' | 'int' | 'text' | 'bool' | 'object' | 'list' | 'file';

/** Parameters of the methods that the fake has; those with `?` are optional. */
const parameters: Readonly<Record<string, Readonly<Record<string, `${Kind}${'?' | ''}`>>>> = {
  getMe: {},
  getWebhookInfo: {},
  deleteWebhook: { drop_pending_updates: 'bool?' },
  getUpdates: { offset: 'int?', limit: 'int?', timeout: 'int?', allowed_updates: 'list?' },
  sendMessage: {
    ...sending(),
    text: 'text',
    parse_mode: 'text?',
    entities: 'list?',
    link_preview_options: 'object?',
  },
  sendPhoto: { ...sending(), ...captioned(), photo: 'file' },
  sendDocument: { ...sending(), ...captioned(), document: 'file' },
  sendVoice: { ...sending(), ...captioned(), voice: 'file' },
  sendAudio: { ...sending(), ...captioned(), audio: 'file' },
  sendVideo: { ...sending(), ...captioned(), video: 'file' },
  sendSticker: { ...sending(), sticker: 'file' },
  sendPoll: { ...sending(), question: 'text', options: 'list' },
  sendChatAction: { chat_id: 'chat', message_thread_id: 'int?', action: 'text' },
  editMessageText: {
    chat_id: 'chat',
    message_id: 'int',
    text: 'text',
    parse_mode: 'text?',
    link_preview_options: 'object?',
    reply_markup: 'object?',
  },
  editMessageCaption: { chat_id: 'chat', message_id: 'int', ...captioned(), reply_markup: 'object?' },
  deleteMessage: { chat_id: 'chat', message_id: 'int' },
  setMessageReaction: { chat_id: 'chat', message_id: 'int', reaction: 'list?', is_big: 'bool?' },
  answerCallbackQuery: { callback_query_id: 'text', text: 'text?', show_alert: 'bool?' },
  getFile: { file_id: 'text' },
  pinChatMessage: { chat_id: 'chat', message_id: 'int', disable_notification: 'bool?' },
  unpinChatMessage: { chat_id: 'chat', message_id: 'int?' },
  getChat: { chat_id: 'chat' },
  getChatMemberCount: { chat_id: 'chat' },
  getChatAdministrators: { chat_id: 'chat' },
  setChatTitle: { chat_id: 'chat', title: 'text' },
  setChatDescription: { chat_id: 'chat', description: 'text?' },
  banChatMember: { chat_id: 'chat', user_id: 'int', until_date: 'int?', revoke_messages: 'bool?' },
  unbanChatMember: { chat_id: 'chat', user_id: 'int', only_if_banned: 'bool?' },
  promoteChatMember: {
    chat_id: 'chat',
    user_id: 'int',
    can_manage_chat: 'bool?',
    can_delete_messages: 'bool?',
    can_manage_video_chats: 'bool?',
    can_restrict_members: 'bool?',
    can_promote_members: 'bool?',
    can_change_info: 'bool?',
    can_invite_users: 'bool?',
    can_pin_messages: 'bool?',
    can_manage_topics: 'bool?',
  },
  createForumTopic: { chat_id: 'chat', name: 'text', icon_color: 'int?', icon_custom_emoji_id: 'text?' },
  editForumTopic: { chat_id: 'chat', message_thread_id: 'int', name: 'text?', icon_custom_emoji_id: 'text?' },
  closeForumTopic: { chat_id: 'chat', message_thread_id: 'int' },
  reopenForumTopic: { chat_id: 'chat', message_thread_id: 'int' },
};

function sending() {
  return { chat_id: 'chat', message_thread_id: 'int?', reply_parameters: 'object?', reply_markup: 'object?', disable_notification: 'bool?' } as const;
}
function captioned() {
  return { caption: 'text?', parse_mode: 'text?', caption_entities: 'list?' } as const;
}

/** A file of a call. */
export interface SentFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export type CallValue = string | number | boolean | object | SentFile;
export type CallParams = Readonly<Record<string, CallValue>>;

export const isKnownCall = (method: string): boolean => Object.hasOwn(parameters, method);

/**
 * Returns the parameters of a call in their types, or the description of the refusal. Forms have texts only; unlike Telegram, which ignores what it
 * does not know, the fake refuses a parameter that the method does not have.
 */
export function readCall(method: string, given: Readonly<Record<string, unknown>>): CallParams | string {
  const known = parameters[method] ?? {};
  const params: Record<string, CallValue> = {};
  for (const [name, value] of Object.entries(given)) {
    const kind = known[name]?.replace('?', '');
    if (kind === undefined) return `Bad Request: unknown parameter ${name} of ${method}`;
    const read = typed(value, kind);
    if (read === undefined) return `Bad Request: parameter ${name} is not of the type ${kind}`;
    params[name] = read;
  }
  for (const [name, kind] of Object.entries(known))
    if (!kind.endsWith('?') && params[name] === undefined)
      return name === 'text' ? 'Bad Request: message text is empty' : `Bad Request: ${name} is empty`;
  return params;
}

function typed(value: unknown, kind: string): CallValue | undefined {
  const isText = typeof value === 'string';
  switch (kind) {
    case 'chat':
    case 'int': {
      const number = isText && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
      return Number.isSafeInteger(number) ? (number as number) : undefined;
    }
    case 'text':
      return isText ? value : undefined;
    case 'bool':
      return value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined;
    case 'file':
      return isText || isFile(value) ? value : undefined;
    default: {
      const parsed = isText ? parsedJson(value) : value;
      return typeof parsed === 'object' && parsed !== null && Array.isArray(parsed) === (kind === 'list') ? parsed : undefined;
    }
  }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isFile = (value: unknown): value is SentFile =>
  typeof value === 'object' && value !== null && 'bytes' in value && value.bytes instanceof Uint8Array;
