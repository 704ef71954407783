/** A message of the fake, as it is stored. */
export interface FakeSlackMessage {
  readonly ts: string;
  readonly threadTs: string | undefined;
  readonly user: string;
  readonly isApp: boolean;
  text: string;
  blocks: readonly Record<string, unknown>[];
  readonly subtype: string | undefined;
  edited: string | undefined;
  readonly metadata: Record<string, unknown> | undefined;
  readonly files: readonly FakeSlackFile[];
  readonly reactions: Map<string, Set<string>>;
}

export interface FakeSlackFile {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
  readonly subtype?: string | undefined;
}

export interface FakeSlackUser {
  readonly id: string;
  readonly name: string;
  readonly workspace: string;
  readonly isBot: boolean;
}

export type FakeSlackKind = 'im' | 'channel' | 'group' | 'mpim';

export interface FakeSlackChannel {
  readonly id: string;
  readonly name: string;
  readonly kind: FakeSlackKind;
  readonly members: Set<string>;
  isArchived: boolean;
  topic: string;
  purpose: string;
  readonly messages: FakeSlackMessage[];
  readonly pins: Set<string>;
  readonly bookmarks: { readonly id: string; readonly title: string; readonly link: string }[];
}

/** What somebody who opens a conversation or a thread sees of a message. */
export interface SeenMessage {
  readonly ts: string;
  readonly from: string;
  readonly text: string;
  readonly buttons: readonly { readonly label: string; readonly value: string }[];
  readonly files: readonly string[];
  readonly reactions: readonly string[];
  readonly isEdited: boolean;
  /** Mentions that notify people. */
  readonly notified: readonly string[];
}

export const botUser = 'UBOT00001';
export const botId = 'B00000001';
export const homeWorkspace = 'T00000001';

/** An error that Slack answers with `ok: false`. */
export class SlackFailure extends Error {}

/** People, conversations, messages and files of a workspace with one app. */
export class Workspace {
  readonly users = new Map<string, FakeSlackUser>();
  readonly channels = new Map<string, FakeSlackChannel>();
  readonly files = new Map<string, FakeSlackFile>();
  readonly #now: () => number;
  #lastMicros = 0;
  #ids = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.users.set(botUser, { id: botUser, name: 'gate', workspace: homeWorkspace, isBot: true });
  }

  newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}${String(this.#ids).padStart(8, '0')}`;
  }

  nextTs(atMs = this.#now()): string {
    this.#lastMicros = Math.max(this.#lastMicros + 1, Math.round(atMs * 1_000));
    const text = String(this.#lastMicros);
    return `${text.slice(0, -6)}.${text.slice(-6)}`;
  }

  addChannel(kind: FakeSlackKind, name: string, members: readonly string[]): FakeSlackChannel {
    const prefix = { im: 'D', channel: 'C', group: 'G', mpim: 'G' }[kind];
    const channel: FakeSlackChannel = {
      id: this.newId(prefix),
      name,
      kind,
      members: new Set(members),
      isArchived: false,
      topic: '',
      purpose: '',
      messages: [],
      pins: new Set(),
      bookmarks: [],
    };
    this.channels.set(channel.id, channel);
    return channel;
  }

  channelOf(id: string | undefined): FakeSlackChannel {
    const channel = this.channels.get(id ?? '');
    if (channel === undefined) throw new SlackFailure('channel_not_found');
    return channel;
  }

  messageOf(channel: FakeSlackChannel, ts: string | undefined, missing = 'message_not_found'): FakeSlackMessage {
    const message = channel.messages.find((one) => one.ts === ts);
    if (message === undefined) throw new SlackFailure(missing);
    return message;
  }

  /** A message as events and histories show it. */
  shape(channel: FakeSlackChannel, message: FakeSlackMessage, withMetadata = false): Record<string, unknown> {
    const user = this.users.get(message.user);
    const workspace = user?.workspace ?? homeWorkspace;
    const parent = message.threadTs === undefined ? undefined : channel.messages.find(({ ts }) => ts === message.threadTs);
    return {
      type: 'message',
      user: message.user,
      ts: message.ts,
      text: message.text,
      team: workspace,
      ...(workspace !== homeWorkspace && { user_team: workspace, source_team: workspace }),
      ...(message.isApp && { bot_id: message.user === botUser ? botId : 'B00000002', app_id: 'A00000001', bot_profile: { name: user?.name ?? '' } }),
      ...(message.subtype !== undefined && { subtype: message.subtype }),
      ...(message.threadTs !== undefined && { thread_ts: message.threadTs }),
      ...(parent !== undefined && parent.ts !== message.ts && { parent_user_id: parent.user }),
      ...(message.edited !== undefined && { edited: { user: message.user, ts: message.edited } }),
      ...(message.blocks.length > 0 && { blocks: message.blocks }),
      ...(message.files.length > 0 && { files: message.files.map(shapeFile) }),
      ...(withMetadata && message.metadata !== undefined && { metadata: message.metadata }),
      ...(message.reactions.size > 0 && {
        reactions: [...message.reactions].map(([name, users]) => ({ name, users: [...users], count: users.size })),
      }),
    };
  }

  /** Returns what somebody sees: the conversation without replies, or a thread. */
  seen(channelId: string, threadTs?: string): SeenMessage[] {
    const channel = this.channelOf(channelId);
    return channel.messages
      .filter((one) =>
        threadTs === undefined ? one.threadTs === undefined || one.threadTs === one.ts : one.ts === threadTs || one.threadTs === threadTs,
      )
      .map((one) => this.#seen(one));
  }

  #seen({ ts, user, text, blocks, files, reactions, edited }: FakeSlackMessage): SeenMessage {
    const sections = blocks.flatMap((block) => (block['type'] === 'section' ? [textOf(block['text'])] : []));
    const shown = sections.length > 0 ? sections.join('\n') : text;
    const elements = blocks.flatMap((block) => (block['type'] === 'actions' && Array.isArray(block['elements']) ? block['elements'] : []));
    return {
      ts,
      from: this.users.get(user)?.name ?? user,
      text: decode(shown),
      buttons: elements.map((element: { readonly text: unknown; readonly value: string }) => ({ label: textOf(element.text), value: element.value })),
      files: files.map(({ name }) => name),
      reactions: [...reactions].flatMap(([name, users]) => (users.size > 0 ? [name] : [])),
      isEdited: edited !== undefined,
      notified: [...shown.matchAll(/<([!@][^<>|]+)/g)].map(([, name]) => name ?? ''),
    };
  }
}

const shapeFile = ({ id, name, mediaType, bytes, subtype }: FakeSlackFile) => ({
  id,
  name,
  title: name,
  mimetype: mediaType,
  size: bytes.length,
  mode: 'hosted',
  ...(subtype !== undefined && { subtype }),
});

const decode = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string' ? value.text : '';
}
