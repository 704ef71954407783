import * as z from 'zod';
import type { ReceivedAttachment, ReceivedMessage } from '../port.ts';
import { mentionsOf, type Names, toPlainText, withoutLeadingMention } from './text.ts';
import { type Spot, Ts } from './tracker.ts';

const id = z.string().regex(/^[A-Z0-9]{1,32}$/);
const text = z.string().nullish();

const SlackFile = z.object({
  id,
  name: text,
  title: text,
  mimetype: text,
  size: z.number().nullish(),
  mode: text,
  subtype: text,
});

const message = {
  subtype: text,
  ts: Ts,
  thread_ts: Ts.nullish(),
  user: id.nullish(),
  bot_id: id.nullish(),
  username: text,
  text,
  team: id.nullish(),
  user_team: id.nullish(),
  source_team: id.nullish(),
  parent_user_id: id.nullish(),
  edited: z.object({ ts: z.string().max(32) }).nullish(),
  bot_profile: z.object({ name: text }).nullish(),
  files: z.array(z.unknown()).nullish(),
};

/** A message in an event or in a history. */
export const SlackMessage = z.object(message);
export type SlackMessage = z.output<typeof SlackMessage>;

/** Events `message` and `app_mention`. */
export const MessageEvent = z.object({
  ...message,
  type: z.enum(['message', 'app_mention']),
  channel: id,
  channel_type: text,
  message: SlackMessage.nullish(),
  previous_message: SlackMessage.nullish(),
  deleted_ts: Ts.nullish(),
});
export type MessageEvent = z.output<typeof MessageEvent>;

/** A pressed button. */
export const BlockActions = z.object({
  type: z.literal('block_actions'),
  user: z.object({ id, username: text, name: text, team_id: id.nullish() }),
  channel: z.object({ id }),
  container: z.object({ message_ts: Ts.nullish(), thread_ts: Ts.nullish() }).nullish(),
  message: z.object({ ts: Ts, thread_ts: Ts.nullish() }).nullish(),
  actions: z.array(z.object({ action_id: z.string(), action_ts: Ts, value: text })).min(1),
});
export type BlockActions = z.output<typeof BlockActions>;

/** Who we are. */
export interface Identity {
  readonly userId: string;
  readonly botId: string | undefined;
  readonly name: string;
  /** Ids of the workspace, and of the organization that it belongs to. */
  readonly workspaces: ReadonlySet<string>;
}

export interface MessageContext {
  readonly self: Identity;
  readonly names: Names;
  isOurThread(channel: string, threadTs: string): boolean;
}

/** Subtypes of messages that somebody wrote; all others report a change of the conversation. */
const written: ReadonlySet<string> = new Set(['', 'bot_message', 'file_share', 'thread_broadcast', 'me_message']);
const mostFiles = 20;

export const isOwn = ({ user, bot_id: botId }: SlackMessage, self: Identity): boolean =>
  user === self.userId || (botId != null && botId === self.botId);

/** Returns whether a message is only shown in its thread. */
export const isReply = ({ ts, thread_ts: threadTs, subtype }: SlackMessage): boolean =>
  threadTs != null && threadTs !== ts && subtype !== 'thread_broadcast';

/** Returns the conversation or the thread that shows a message. */
export const spotOf = (channel: string, one: SlackMessage): Spot => ({ channel, threadTs: isReply(one) ? (one.thread_ts ?? undefined) : undefined });

/** Returns the ids of people whose names a message needs. */
export const peopleOf = ({ user, text: markup }: SlackMessage): string[] => [...(user == null ? [] : [user]), ...mentionsOf(markup ?? '')];

/** Returns what the gateway receives of a message; undefined for our own and for those that nobody wrote. */
export function receivedOf(channel: string, one: SlackMessage, context: MessageContext): ReceivedMessage | undefined {
  const { self, names } = context;
  if (!written.has(one.subtype ?? '') || isOwn(one, self)) return undefined;
  const isBot = one.bot_id != null || one.subtype === 'bot_message';
  const account = one.user ?? one.bot_id;
  if (account == null) return undefined;
  const markup = one.text ?? '';
  const attachments = (one.files ?? []).slice(0, mostFiles).flatMap(attachmentOf);
  return {
    eventKey: `${channel}:${one.ts}`,
    messageId: one.ts,
    conversationId: channel,
    ...(one.thread_ts != null && { threadId: one.thread_ts }),
    conversationKind: kindOf(channel),
    senderId: senderIdOf(account, workspaceOf(one), self),
    senderName: (one.user == null ? undefined : names.userName(one.user)) ?? one.username ?? one.bot_profile?.name ?? account,
    isBot,
    text: toPlainText(withoutLeadingMention(markup, self.userId), names),
    mentionsUs: mentionsUs(channel, one, context),
    sentAtMs: msOf(one.ts),
    ...(attachments.length > 0 && { attachments }),
  };
}

/** Returns the new version of a message, or its end; undefined when its text is as before. */
export function editOf(event: MessageEvent, context: MessageContext): ReceivedMessage | undefined {
  const { channel, message: now, previous_message: before, deleted_ts: deletedTs } = event;
  const isDeleted = event.subtype === 'message_deleted' || now?.subtype === 'tombstone';
  if (isDeleted) {
    const ts = deletedTs ?? now?.ts;
    const received = ts == null || before == null ? undefined : receivedOf(channel, { ...before, ts }, context);
    return (
      received && { ...received, eventKey: `${channel}:${ts}:deleted`, edits: received.messageId, isDeleted: true, text: '', attachments: undefined }
    );
  }
  if (now?.edited == null || now.text === before?.text) return undefined;
  const received = receivedOf(channel, now, context);
  return received && { ...received, eventKey: `${channel}:${now.ts}:edited:${now.edited.ts}`, edits: now.ts };
}

/** Returns the message that a pressed button stands for. */
export function pressOf(
  { user, channel, container, message: shown, actions }: BlockActions,
  { self, names }: MessageContext,
): ReceivedMessage | undefined {
  const [pressed] = actions;
  if (pressed?.value == null) return undefined;
  const threadId = container?.thread_ts ?? shown?.thread_ts;
  return {
    eventKey: `${channel.id}:${pressed.action_ts}:pressed:${user.id}`,
    conversationId: channel.id,
    ...(threadId != null && { threadId }),
    conversationKind: kindOf(channel.id),
    senderId: senderIdOf(user.id, user.team_id, self),
    senderName: names.userName(user.id) ?? user.name ?? user.username ?? user.id,
    isBot: false,
    text: pressed.value,
    mentionsUs: true,
    sentAtMs: msOf(pressed.action_ts),
  };
}

/** Returns the plain text of a message. */
export const plainTextOf = (one: SlackMessage, names: Names): string => toPlainText(one.text ?? '', names);

export const msOf = (ts: string): number => Math.floor(Number(ts) * 1_000);

/** Ids of direct conversations with one person begin with D. */
const kindOf = (channel: string): 'direct' | 'shared' => (channel.startsWith('D') ? 'direct' : 'shared');

/** An id of a person is unique in its workspace only: those of other workspaces, in shared channels, get it as a prefix. */
export const senderIdOf = (account: string, workspace: string | null | undefined, { workspaces }: Identity): string =>
  workspace == null || workspaces.has(workspace) ? account : `${workspace}:${account}`;

/** Returns the workspace of the author. */
export const workspaceOf = (one: SlackMessage): string | null | undefined => one.user_team ?? one.source_team ?? one.team;

function mentionsUs(channel: string, one: SlackMessage, { self, isOurThread }: MessageContext): boolean {
  if (mentionsOf(one.text ?? '').includes(self.userId)) return true;
  if (one.thread_ts == null || one.thread_ts === one.ts) return false;
  return one.parent_user_id === self.userId || isOurThread(channel, one.thread_ts);
}

function attachmentOf(value: unknown): ReceivedAttachment[] {
  const parsed = SlackFile.safeParse(value);
  if (!parsed.success) return [];
  const { id: ref, name, title, mimetype, size, mode, subtype } = parsed.data;
  // Deleted, beyond the plan of the workspace, or kept elsewhere.
  if (mode === 'tombstone' || mode === 'hidden_by_limit' || mode === 'external') return [];
  return [
    {
      ref,
      name: name ?? title ?? ref,
      ...(mimetype != null && mimetype !== '' && { mediaType: mimetype }),
      ...(size != null && size >= 0 && { bytes: size }),
      ...(subtype === 'slack_audio' && { isVoice: true }),
    },
  ];
}
