import { botId, botUser, type FakeSlackChannel, type FakeSlackMessage, homeWorkspace, SlackFailure, type Workspace } from './fake-slack-workspace.ts';

type Params = Readonly<Record<string, string>>;
type Answer = Record<string, unknown>;

/** What methods can do in addition to changing the workspace. */
export interface MethodDeps {
  readonly workspace: Workspace;
  readonly url: string;
  /** Files whose bytes are expected, and have come. */
  readonly uploads: Map<string, { readonly name: string; readonly length: number; bytes: Buffer | undefined }>;
  /** Issues the address of a WebSocket. */
  openConnection(): string;
  /** Reports a message of the app to the app itself. */
  posted(channel: FakeSlackChannel, message: FakeSlackMessage): void;
}

export interface Method {
  readonly token: 'bot' | 'app';
  readonly required: readonly string[];
  readonly optional: readonly string[];
  run(params: Params, deps: MethodDeps): Answer;
}

const bot = (required: readonly string[], optional: readonly string[], run: Method['run']): Method => ({ token: 'bot', required, optional, run });
const paging = ['cursor', 'inclusive', 'latest', 'limit', 'oldest', 'include_all_metadata'];
const content = ['text', 'blocks', 'mrkdwn', 'parse', 'link_names', 'unfurl_links', 'unfurl_media', 'metadata', 'thread_ts'];
const longestText = 40_000;
const longestBlockText = 3_000;

/** The methods of the Web API that the fake knows, each with its parameters. */
export const slackMethods: Readonly<Record<string, Method>> = {
  'auth.test': bot([], [], () => ({
    url: 'https://fake.slack.com/',
    user: 'gate',
    team_id: homeWorkspace,
    user_id: botUser,
    bot_id: botId,
    is_enterprise_install: false,
  })),
  'apps.connections.open': { token: 'app', required: [], optional: [], run: (_params, { openConnection }) => ({ url: openConnection() }) },
  'users.info': bot(['user'], ['include_locale'], ({ user }, { workspace }) => {
    const found = workspace.users.get(user ?? '');
    if (found === undefined) throw new SlackFailure('user_not_found');
    const { id, name, workspace: home, isBot } = found;
    return {
      user: { id, team_id: home, name: name.toLowerCase(), real_name: name, is_bot: isBot, profile: { display_name: name, real_name: name } },
    };
  }),
  'chat.postMessage': bot(['channel'], content, postMessage),
  'chat.update': bot(['channel', 'ts'], [...content, 'as_user'], updateMessage),
  'chat.delete': bot(['channel', 'ts'], [], ({ channel: id, ts }, { workspace }) => {
    const channel = memberOf(workspace, id);
    const message = workspace.messageOf(channel, ts);
    if (message.user !== botUser) throw new SlackFailure('cant_delete_message');
    channel.messages.splice(channel.messages.indexOf(message), 1);
    return { channel: id, ts };
  }),
  'reactions.add': bot(['channel', 'timestamp', 'name'], [], (params, { workspace }) => {
    const users = reactionOf(workspace, params);
    if (users.has(botUser)) throw new SlackFailure('already_reacted');
    users.add(botUser);
    return {};
  }),
  'reactions.remove': bot(['channel', 'timestamp', 'name'], [], (params, { workspace }) => {
    const users = reactionOf(workspace, params);
    if (!users.delete(botUser)) throw new SlackFailure('no_reaction');
    return {};
  }),
  'conversations.history': bot(['channel'], paging, (params, { workspace }) => {
    const channel = memberOf(workspace, params['channel']);
    const shown = channel.messages.filter((one) => one.threadTs === undefined || one.threadTs === one.ts || one.subtype === 'thread_broadcast');
    return pageOf(workspace, channel, shown.filter(between(params)).toReversed(), params);
  }),
  'conversations.replies': bot(['channel', 'ts'], paging, (params, { workspace }) => {
    const channel = memberOf(workspace, params['channel']);
    const parent = workspace.messageOf(channel, params['ts'], 'thread_not_found');
    const replies = channel.messages.filter((one) => one.threadTs === parent.ts && one !== parent).filter(between(params));
    return pageOf(workspace, channel, [parent, ...replies], params);
  }),
  'conversations.info': bot(
    ['channel'],
    ['include_num_members', 'include_locale'],
    ({ channel: id, include_num_members: counts }, { workspace }) => ({
      channel: shapeChannel(workspace.channelOf(id), counts === 'true'),
    }),
  ),
  'conversations.members': bot(['channel'], ['cursor', 'limit'], ({ channel: id, limit }, { workspace }) => {
    const all = [...workspace.channelOf(id).members];
    const members = all.slice(0, Number(limit ?? 100));
    return { members, response_metadata: { next_cursor: members.length < all.length ? 'bmV4dA==' : '' } };
  }),
  'conversations.create': bot(['name'], ['is_private', 'team_id'], ({ name = '', is_private: isPrivate }, { workspace }) => {
    if ([...workspace.channels.values()].some((one) => one.name === name)) throw new SlackFailure('name_taken');
    return { channel: shapeChannel(workspace.addChannel(isPrivate === 'true' ? 'group' : 'channel', name, [botUser]), false) };
  }),
  'conversations.archive': bot(['channel'], [], ({ channel: id }, { workspace }) => {
    const channel = memberOf(workspace, id);
    if (channel.isArchived) throw new SlackFailure('already_archived');
    channel.isArchived = true;
    return {};
  }),
  'conversations.unarchive': bot(['channel'], [], ({ channel: id }, { workspace }) => {
    const channel = workspace.channelOf(id);
    if (!channel.isArchived) throw new SlackFailure('not_archived');
    channel.isArchived = false;
    return {};
  }),
  'conversations.invite': bot(['channel', 'users'], ['force'], ({ channel: id, users = '' }, { workspace }) => {
    const channel = memberOf(workspace, id);
    for (const user of users.split(',')) {
      if (!workspace.users.has(user)) throw new SlackFailure('user_not_found');
      channel.members.add(user);
    }
    return { channel: shapeChannel(channel, false) };
  }),
  'conversations.kick': bot(['channel', 'user'], [], ({ channel: id, user = '' }, { workspace }) => {
    if (!memberOf(workspace, id).members.delete(user)) throw new SlackFailure('not_in_channel');
    return {};
  }),
  'conversations.setTopic': bot(['channel', 'topic'], [], ({ channel: id, topic = '' }, { workspace }) => {
    const channel = memberOf(workspace, id);
    channel.topic = topic;
    return { channel: shapeChannel(channel, false) };
  }),
  'conversations.setPurpose': bot(['channel', 'purpose'], [], ({ channel: id, purpose = '' }, { workspace }) => {
    const channel = memberOf(workspace, id);
    channel.purpose = purpose;
    return { channel: shapeChannel(channel, false) };
  }),
  'pins.add': bot(['channel', 'timestamp'], [], ({ channel: id, timestamp }, { workspace }) => {
    const channel = memberOf(workspace, id);
    const { ts } = workspace.messageOf(channel, timestamp);
    if (channel.pins.has(ts)) throw new SlackFailure('already_pinned');
    channel.pins.add(ts);
    return {};
  }),
  'pins.remove': bot(['channel', 'timestamp'], [], ({ channel: id, timestamp = '' }, { workspace }) => {
    if (!memberOf(workspace, id).pins.delete(timestamp)) throw new SlackFailure('no_pin');
    return {};
  }),
  'bookmarks.add': bot(
    ['channel_id', 'title', 'type'],
    ['link', 'emoji', 'entity_id'],
    ({ channel_id: id, title = '', link = '' }, { workspace }) => {
      const bookmark = { id: workspace.newId('Bk'), title, link };
      memberOf(workspace, id).bookmarks.push(bookmark);
      return { bookmark };
    },
  ),
  'files.getUploadURLExternal': bot(
    ['filename', 'length'],
    ['alt_text', 'snippet_type'],
    ({ filename = '', length }, { workspace, uploads, url }) => {
      const id = workspace.newId('F');
      if (!(Number(length) > 0)) throw new SlackFailure('invalid_arguments');
      uploads.set(id, { name: filename, length: Number(length), bytes: undefined });
      return { upload_url: `${url}/upload/v1/${id}`, file_id: id };
    },
  ),
  'files.completeUploadExternal': bot(['files'], ['channel_id', 'channels', 'thread_ts', 'initial_comment', 'blocks'], completeUpload),
  'files.info': bot(['file'], ['cursor', 'limit'], ({ file: id = '' }, { workspace, url }) => {
    const file = workspace.files.get(id);
    if (file === undefined) throw new SlackFailure('file_not_found');
    const { name, mediaType, bytes } = file;
    return {
      file: { id, name, mimetype: mediaType, size: bytes.length, url_private: `${url}/files/${id}`, url_private_download: `${url}/files/${id}` },
    };
  }),
};

function postMessage(params: Params, { workspace, posted }: MethodDeps): Answer {
  const channel = memberOf(workspace, params['channel']);
  const blocks = blocksOf(params);
  const text = textOf(params, blocks);
  const threadTs = params['thread_ts'];
  if (threadTs !== undefined) workspace.messageOf(channel, threadTs, 'thread_not_found');
  const metadata = jsonOf(params['metadata']);
  const message: FakeSlackMessage = {
    ts: workspace.nextTs(),
    threadTs,
    user: botUser,
    isApp: true,
    text,
    blocks,
    subtype: undefined,
    edited: undefined,
    metadata: metadata === undefined ? undefined : (metadata as Record<string, unknown>),
    files: [],
    reactions: new Map(),
  };
  channel.messages.push(message);
  posted(channel, message);
  return { channel: channel.id, ts: message.ts, message: workspace.shape(channel, message, true) };
}

function updateMessage(params: Params, { workspace }: MethodDeps): Answer {
  const channel = memberOf(workspace, params['channel']);
  const message = workspace.messageOf(channel, params['ts']);
  if (message.user !== botUser) throw new SlackFailure('cant_update_message');
  const blocks = params['blocks'] === undefined ? message.blocks : blocksOf(params);
  message.text = textOf(params, blocks);
  message.blocks = blocks;
  message.edited = workspace.nextTs();
  return { channel: channel.id, ts: message.ts, text: message.text };
}

function completeUpload(params: Params, { workspace, uploads, posted }: MethodDeps): Answer {
  const asked = jsonOf(params['files']);
  if (!Array.isArray(asked)) throw new SlackFailure('invalid_arguments');
  const files = asked.map(({ id, title }: { readonly id: string; readonly title?: string }) => {
    const upload = uploads.get(id);
    if (upload?.bytes === undefined) throw new SlackFailure('file_not_found');
    uploads.delete(id);
    const file = { id, name: title ?? upload.name, mediaType: 'application/octet-stream', bytes: upload.bytes };
    workspace.files.set(id, file);
    return file;
  });
  if (params['channel_id'] !== undefined) {
    const channel = memberOf(workspace, params['channel_id']);
    const message: FakeSlackMessage = {
      ts: workspace.nextTs(),
      threadTs: params['thread_ts'],
      user: botUser,
      isApp: true,
      text: params['initial_comment'] ?? '',
      blocks: blocksOf(params),
      subtype: 'file_share',
      edited: undefined,
      metadata: undefined,
      files,
      reactions: new Map(),
    };
    channel.messages.push(message);
    posted(channel, message);
  }
  return { files: files.map(({ id, name }) => ({ id, title: name })) };
}

/** The app reads and writes only where it is a member. */
function memberOf(workspace: Workspace, id: string | undefined): FakeSlackChannel {
  const channel = workspace.channelOf(id);
  if (!channel.members.has(botUser)) throw new SlackFailure(channel.kind === 'channel' ? 'not_in_channel' : 'channel_not_found');
  if (channel.isArchived) throw new SlackFailure('is_archived');
  return channel;
}

function reactionOf(workspace: Workspace, { channel, timestamp, name = '' }: Params): Set<string> {
  if (!/^[a-z0-9_'+-]+(?:::skin-tone-[2-6])?$/.test(name)) throw new SlackFailure('invalid_name');
  const { reactions } = workspace.messageOf(memberOf(workspace, channel), timestamp);
  const users = reactions.get(name) ?? new Set();
  reactions.set(name, users);
  return users;
}

function textOf({ text = '' }: Params, blocks: readonly unknown[]): string {
  if (text === '' && blocks.length === 0) throw new SlackFailure('no_text');
  if (text.length > longestText) throw new SlackFailure('msg_too_long');
  return text;
}

function blocksOf({ blocks }: Params): readonly Record<string, unknown>[] {
  const parsed = jsonOf(blocks) ?? [];
  if (!Array.isArray(parsed) || parsed.length > 50) throw new SlackFailure('invalid_blocks');
  for (const block of parsed as { readonly type?: string; readonly text?: { readonly text?: string }; readonly elements?: readonly object[] }[]) {
    const isSection = block.type === 'section' && (block.text?.text?.length ?? 0) > 0 && (block.text?.text?.length ?? 0) <= longestBlockText;
    const isActions = block.type === 'actions' && block.elements !== undefined && block.elements.length > 0 && block.elements.length <= 25;
    if (!isSection && !isActions) throw new SlackFailure('invalid_blocks');
  }
  return parsed as readonly Record<string, unknown>[];
}

const between =
  ({ oldest, latest, inclusive }: Params) =>
  ({ ts }: FakeSlackMessage): boolean => {
    const at = Number(ts);
    const isIncluded = inclusive === 'true';
    if (oldest !== undefined && (at < Number(oldest) || (at === Number(oldest) && !isIncluded))) return false;
    return latest === undefined || at < Number(latest) || (at === Number(latest) && isIncluded);
  };

function pageOf(workspace: Workspace, channel: FakeSlackChannel, messages: readonly FakeSlackMessage[], params: Params): Answer {
  const { cursor, limit, include_all_metadata: withMetadata } = params;
  const start = cursor === undefined ? 0 : Number(Buffer.from(cursor, 'base64').toString().replace('at:', ''));
  const end = start + Number(limit ?? 100);
  if (!(end > start) || end - start > 999) throw new SlackFailure('invalid_limit');
  const hasMore = messages.length > end;
  return {
    messages: messages.slice(start, end).map((one) => workspace.shape(channel, one, withMetadata === 'true')),
    has_more: hasMore,
    ...(hasMore && { response_metadata: { next_cursor: Buffer.from(`at:${end}`).toString('base64') } }),
  };
}

const shapeChannel = ({ id, name, kind, members, isArchived, topic, purpose }: FakeSlackChannel, counts: boolean) => ({
  id,
  ...(kind !== 'im' && { name }),
  is_im: kind === 'im',
  is_mpim: kind === 'mpim',
  is_private: kind !== 'channel',
  is_archived: isArchived,
  topic: { value: topic },
  purpose: { value: purpose },
  ...(counts && { num_members: members.size }),
});

function jsonOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    throw new SlackFailure('invalid_arguments');
  }
}
