import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { messageStatuses } from '../shared/channel.ts';
import { ChannelEndpoint } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const MessageId = z.string().min(1).max(512);

/** The destination. Coordinates other than the endpoint are only checked. */
const place = {
  endpoint: ChannelEndpoint.describe('All fields must be those of one conversation that people have with an agent, as `channels.messages` shows it.'),
  channel_type: z.string().min(1).max(32).optional().describe('Must be that of the endpoint.'),
  channel_id: z.string().min(1).max(512).optional().describe('The conversation on the platform; must be that of the endpoint.'),
};
const about = { message_id: MessageId.describe('Of the platform, or ours (`cm_…`, `ob_…`).') };
const operation = {
  operation_id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('A repeat under the same id sends nothing and returns the first receipt. Each call of an agent has a separate one.'),
};

const Button = z.strictObject({
  label: z.string().min(1).max(64),
  command: z.string().min(1).max(64).describe('The text that pressing it sends, at most 64 bytes.'),
});
const text = z.string().min(1).max(32_768);
const content = {
  text: text.describe('Markdown, rendered and cut as the platform needs it.'),
  buttons: z.array(z.array(Button).max(8)).max(8).optional().describe('Rows of buttons; written out as commands where the platform has none.'),
  cards: z.array(z.unknown()).max(8).optional().describe('No platform has them yet.'),
  effects: z.array(z.string().max(64)).max(8).optional().describe('No platform has them yet.'),
  thread_reply: z.boolean().optional().describe('The message must go into the thread that the endpoint names.'),
};

const Sent = once(() =>
  z.strictObject({
    messageId: MessageId.describe('Of the first part: the id on the platform, or `deliveryId` where there is none (yet).'),
    channelId: z.string().describe('The conversation on the platform.'),
    deliveryId: z.string().describe('`ob_…` of the first part, as in `delivery.list`.'),
    deliveryStatus: z
      .enum(messageStatuses)
      .describe(
        'After at most 20 s. `pending`: it is still to be sent; `partial`: some parts were accepted and the others never will be; `pre_send_failed`: it could not be sent in time; `unknown`: it may have been sent.',
      ),
    messageIds: z.array(z.string()).describe('Ids on the platform of the parts that have one.'),
    error: z.string().optional().describe('Why a part was not accepted.'),
  }),
);

const endpoint = { channelType: 'irc', channelInstanceId: 'libera', conversationId: '#lab', conversationKind: 'shared' } as const;
const deliveryId = 'ob_0199e0a0-7c00-7000-8000-000000000001-01';
const sent = { messageId: 'kQ3x', channelId: '#lab', deliveryId, deliveryStatus: 'accepted' as const, messageIds: ['kQ3x'] };
const sendErrors = ['not_found', 'precondition_failed', 'denied', 'conflict', 'unavailable', 'rate_limited'] as const;
const actErrors = ['not_found', 'precondition_failed', 'denied', 'invalid_params', 'unavailable', 'rate_limited'] as const;

export const message = {
  'message.send': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Sends a message into a conversation of a channel.',
    description:
      'Goes through the outbox, which alone repeats a send. A token without `admin` reaches the conversations of its principal, an agent those of the user that it works for; for them no others exist.',
    params: () => z.strictObject({ ...place, ...content, ...operation }),
    result: () => Sent(),
    errors: sendErrors,
    examples: [{ params: { endpoint, text: 'The build is green.' }, result: sent }],
    since: '0.1.0',
  }),
  'message.reply': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Sends a message that answers another one, where the platform has such a link.',
    params: () => z.strictObject({ ...place, ...about, ...content, ...operation }),
    result: () => Sent(),
    errors: sendErrors,
    examples: [{ params: { endpoint, message_id: 'kQ3w', text: 'Yes.' }, result: sent }],
    since: '0.1.0',
  }),
  'message.react': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Adds a reaction to a message.',
    params: () => z.strictObject({ ...place, ...about, emoji: z.string().min(1).max(64), ...operation }),
    result: () => z.strictObject({ reacted: z.literal(true), channelId: z.string(), messageId: MessageId, emoji: z.string() }),
    errors: [...actErrors, 'conflict'],
    examples: [
      { params: { endpoint, message_id: 'kQ3w', emoji: '👍' }, result: { reacted: true, channelId: '#lab', messageId: 'kQ3w', emoji: '👍' } },
    ],
    since: '0.1.0',
  }),
  'message.edit': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Replaces the text of a message of ours.',
    params: () => z.strictObject({ ...place, ...about, text }),
    result: () => z.strictObject({ edited: z.literal(true), channelId: z.string(), messageId: MessageId }),
    errors: actErrors,
    examples: [{ params: { endpoint, message_id: deliveryId, text: 'It is red.' }, result: { edited: true, channelId: '#lab', messageId: 'kQ3x' } }],
    since: '0.1.0',
  }),
  'message.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes a message on the platform.',
    params: () => z.strictObject({ ...place, ...about }),
    result: () => z.strictObject({ deleted: z.literal(true), channelId: z.string(), messageId: MessageId }),
    errors: actErrors,
    examples: [{ params: { endpoint, message_id: deliveryId }, result: { deleted: true, channelId: '#lab', messageId: 'kQ3x' } }],
    since: '0.1.0',
  }),
  'message.fetch': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the newest messages that the platform keeps of a conversation, newest first.',
    params: () => z.strictObject({ ...place, limit: z.int().min(1).max(100).default(20), before: MessageId.optional() }),
    result: () =>
      z.strictObject({
        messages: z.array(z.strictObject({ id: z.string(), senderId: z.string(), text: z.string(), timestamp: EpochMs })),
        channelId: z.string(),
      }),
    errors: actErrors,
    examples: [{ params: { endpoint }, result: { messages: [], channelId: '#lab' } }],
    since: '0.1.0',
  }),
  'message.attach': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Sends a file, with a caption.',
    description:
      'The file is one of the media store, or is fetched into it: only from public addresses, never from the disk of the gateway. `receipt` is null while it is not accepted.',
    params: () =>
      z.strictObject({
        ...place,
        attachment_url: z.string().min(1).max(4_096).describe('A media id, its path (`/media/…`), or an address (`https://…`).'),
        attachment_type: z.enum(['image', 'file', 'audio', 'video']).default('file'),
        mime_type: z.string().min(1).max(128).optional().describe('A hint for a fetched file: its bytes decide.'),
        file_name: z.string().min(1).max(255).optional(),
        caption: z.string().max(4_096).optional(),
        ...operation,
      }),
    result: () =>
      Sent().extend({
        receipt: z
          .discriminatedUnion('kind', [
            z.strictObject({ kind: z.literal('tracked'), messageId: z.string() }),
            z.strictObject({ kind: z.literal('delivered_untracked') }),
          ])
          .nullable(),
      }),
    errors: [...sendErrors, 'invalid_params', 'payload_too_large', 'timeout'],
    examples: [
      {
        params: { endpoint, attachment_url: 'md_0199e0a0-7c00-7000-8000-000000000001.png', attachment_type: 'image' },
        result: { ...sent, receipt: { kind: 'tracked', messageId: 'kQ3x' } },
      },
    ],
    since: '0.1.0',
  }),
};
