import { ChannelEndpoint, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { Coordinates } from './api.ts';
import type { OutgoingMethods } from './outgoing.ts';
import { findNewest } from './store.ts';

/** Longer than a call waits for the platform. */
const timeoutMs = 60_000;

const to = () =>
  ChannelEndpoint.optional().describe('Another conversation of the same user with you; the one that you are talking in when absent.');
const messageId = () => z.string().min(1).max(512).optional().describe('The message; the newest one of this conversation when absent.');
const text = () => z.string().min(1).max(32_768).describe('Markdown.');

const Args = once(() =>
  z.discriminatedUnion('action', [
    z.strictObject({ action: z.literal('send'), text: text(), to: to() }),
    z.strictObject({ action: z.literal('reply'), text: text(), message_id: messageId(), to: to() }),
    z.strictObject({ action: z.literal('react'), emoji: z.string().min(1).max(64), message_id: messageId(), to: to() }),
    z.strictObject({ action: z.literal('fetch'), limit: z.int().min(1).max(100).default(20), before: z.string().min(1).max(512).optional(), to: to() }),
  ]),
);
type Args = z.output<ReturnType<typeof Args>>;

/** `message`: the methods `message.*` for agents, in the conversation of the call or another one of the same user. */
export function createMessageTool(db: Db, methods: OutgoingMethods): Tool<ReturnType<typeof Args>> {
  async function placeOf(args: Args, { conversationRef }: ToolContext): Promise<Coordinates & { readonly newestId: string | undefined }> {
    if (args.to !== undefined) return { endpoint: args.to, newestId: undefined };
    const newest = await db.read(findNewest, { conversationRef });
    if (newest === undefined)
      throw new AppError('precondition_failed', 'This conversation is not in a channel: name another one with `to`', { param: 'to' });
    const { id, instance: channelInstanceId, channelType, conversationId, threadId, conversationKind } = newest;
    return { endpoint: { channelType, channelInstanceId, conversationId, ...(threadId !== null && { threadId }), conversationKind }, newestId: id };
  }

  const named = (id: string | undefined): string => {
    if (id === undefined) throw new AppError('invalid_params', 'message_id: expected the id of a message', { param: 'message_id' });
    return id;
  };

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
      switch (args.action) {
        case 'send':
          return sentText(await methods['message.send']({ ...place, text: args.text, operation_id: callId }, call));
        case 'reply':
          return sentText(
            await methods['message.reply'](
              { ...place, text: args.text, message_id: named(args.message_id ?? newestId), operation_id: callId },
              call,
            ),
          );
        case 'react': {
          const params = { ...place, emoji: args.emoji, message_id: named(args.message_id ?? newestId), operation_id: callId };
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

function sentText({ messageId: id, deliveryStatus, error }: Awaited<ReturnType<OutgoingMethods['message.send']>>): ToolResult {
  if (deliveryStatus === 'accepted') return { content: `Sent as ${id}.` };
  if (deliveryStatus === 'pending') return { content: `Message ${id} waits to be sent. Do not send it again.` };
  const why = error === undefined ? '' : `: ${error}`;
  if (deliveryStatus === 'unknown')
    return { content: `Message ${id} may have been sent${why}. Do not send it again: an operator decides.`, isError: true };
  return { content: `Message ${id} was not sent (${deliveryStatus})${why}`, isError: true };
}
