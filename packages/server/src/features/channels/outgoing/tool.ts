import { ChannelEndpoint, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { Coordinates } from './api.ts';
import { workspaceScheme } from './attachment.ts';
import type { OutgoingMethods } from './outgoing.ts';
import { findNewest } from './store.ts';

/** Longer than a call waits for the platform. */
const timeoutMs = 60_000;

const Args = once(() =>
  z.strictObject({
    action: z.enum(['send', 'reply', 'react', 'fetch']),
    text: z.string().min(1).max(32_768).optional().describe('For send and reply: Markdown.'),
    file: z.string().min(1).max(1_024).optional().describe('For send: a file of your workspace, with the text as its caption.'),
    emoji: z.string().min(1).max(64).optional().describe('For react.'),
    message_id: z.string().min(1).max(512).optional().describe('For reply and react: the message; the newest one of this conversation when absent.'),
    limit: z.int().min(1).max(100).default(20).describe('For fetch.'),
    before: z.string().min(1).max(512).optional().describe('For fetch: the message before which to begin.'),
    to: ChannelEndpoint.optional().describe('Another conversation of the same user with you; the one that you are talking in when absent.'),
  }),
);
type Args = z.output<ReturnType<typeof Args>>;

/** A message of a conversation, with the endpoint that it came from. */
export interface Origin {
  readonly endpoint: Coordinates['endpoint'];
  readonly messageId: string;
}

/** Returns the newest message of a conversation; undefined when it is not in a channel. */
export async function originOf(db: Db, conversationRef: string): Promise<Origin | undefined> {
  const newest = await db.read(findNewest, { conversationRef });
  if (newest === undefined) return undefined;
  const { id: messageId, instance: channelInstanceId, channelType, conversationId, threadId, conversationKind } = newest;
  return { endpoint: { channelType, channelInstanceId, conversationId, ...(threadId !== null && { threadId }), conversationKind }, messageId };
}

/** `message`: the methods `message.*` for agents, in the conversation of the call or another one of the same user. */
export function createMessageTool(db: Db, methods: OutgoingMethods): Tool<ReturnType<typeof Args>> {
  async function placeOf(args: Args, { conversationRef }: ToolContext): Promise<Coordinates & { readonly newestId: string | undefined }> {
    if (args.to !== undefined) return { endpoint: args.to, newestId: undefined };
    const origin = await originOf(db, conversationRef);
    if (origin === undefined)
      throw new AppError('precondition_failed', 'This conversation is not in a channel: name another one with `to`', { param: 'to' });
    return { endpoint: origin.endpoint, newestId: origin.messageId };
  }

  function attach(path: string, caption: string | undefined, place: Coordinates, { call, callId }: ToolContext) {
    const attachment_url = `${workspaceScheme}${path}`;
    return methods['message.attach']({ ...place, attachment_url, attachment_type: kindOf(path), caption, operation_id: callId }, call);
  }

  function given(name: 'text' | 'emoji' | 'message_id', value: string | undefined): string {
    if (value === undefined) throw new AppError('invalid_params', `${name}: missing`, { param: name });
    return value;
  }

  return {
    name: 'message',
    description:
      'Writes to people over chat channels, apart from your answer, which is sent anyway: `send`, `reply` to a message, `react` with an emoji, `fetch` what the platform keeps.',
    get args() {
      return Args();
    },
    risk: 'outward',
    // Its identity is that of the call: a repeat after a crash sends nothing again.
    effect: 'idempotent',
    capability: 'orch:message',
    timeoutMs,
    onlyReads: ({ action }) => action === 'fetch',
    describe: (args) => `${args.action} a message${args.to === undefined ? '' : ` in ${args.to.conversationId} (${args.to.channelType})`}`,
    async run(args, context): Promise<ToolResult> {
      const { call, callId } = context;
      const { newestId, ...place } = await placeOf(args, context);
      const content = () => ({ ...place, text: given('text', args.text), operation_id: callId });
      const messageId = () => given('message_id', args.message_id ?? newestId);
      switch (args.action) {
        case 'send':
          if (args.file !== undefined) return sentText(await attach(args.file, args.text, place, context));
          return sentText(await methods['message.send'](content(), call));
        case 'reply':
          return sentText(await methods['message.reply']({ ...content(), message_id: messageId() }, call));
        case 'react': {
          const params = { ...place, emoji: given('emoji', args.emoji), message_id: messageId(), operation_id: callId };
          const { messageId: reacted } = await methods['message.react'](params, call);
          return { content: `Reacted to ${reacted}.` };
        }
        case 'fetch': {
          const { messages } = await methods['message.fetch']({ ...place, limit: args.limit, before: args.before }, call);
          const lines = messages.map(({ id, senderId, text: said, timestamp }) => JSON.stringify({ id, senderId, at: timestamp, text: said }));
          return { content: lines.join('\n'), outside: { source: `${place.endpoint.channelType} messages` } };
        }
      }
    },
  };
}

const kinds = [
  ['image', /\.(?:png|jpe?g|gif|webp)$/i],
  ['audio', /\.(?:mp3|ogg|opus|wav|m4a|flac)$/i],
  ['video', /\.(?:mp4|webm|mov)$/i],
] as const;

/** Returns how people see a file, by its name. */
const kindOf = (path: string): 'image' | 'audio' | 'video' | 'file' => kinds.find(([, ending]) => ending.test(path))?.[0] ?? 'file';

function sentText({ messageId: id, deliveryStatus, error }: Awaited<ReturnType<OutgoingMethods['message.send']>>): ToolResult {
  if (deliveryStatus === 'accepted') return { content: `Sent as ${id}.` };
  if (deliveryStatus === 'pending') return { content: `Message ${id} waits to be sent. Do not send it again.` };
  const why = error === undefined ? '' : `: ${error}`;
  if (deliveryStatus === 'unknown')
    return { content: `Message ${id} may have been sent${why}. Do not send it again: an operator decides.`, isError: true };
  return { content: `Message ${id} was not sent (${deliveryStatus})${why}`, isError: true };
}
