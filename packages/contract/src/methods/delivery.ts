import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { deliveryStates } from '../shared/channel.ts';
import { AgentId, ChannelEndpoint, ConversationRef } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const ChannelType = z.string().min(1).max(32);
const InstanceId = z.string().min(1).max(64);

const Delivery = once(() =>
  z
    .strictObject({
      deliveryId: z.string().describe('`ob_…`'),
      endpoint: ChannelEndpoint,
      state: z
        .enum(deliveryStates)
        .describe('`held`: an earlier part of the same message is not accepted, or quiet hours have not ended. `unknown`: it may have been sent.'),
      part: z.int().min(1),
      parts: z.int().min(1),
      text: z.string().describe('Truncated to 2,000 characters.'),
      attempts: z.int().min(0),
      platformId: z.string().nullable(),
      errorKind: z.string().nullable(),
      error: z.string().nullable(),
      agentId: AgentId,
      conversationRef: ConversationRef.nullable(),
      turnId: z.string().nullable(),
      createdAt: EpochMs,
      notBefore: EpochMs.nullable().describe('The next try of a pending one; the end of the quiet hours that hold one.'),
      endedAt: EpochMs.nullable(),
    })
    .meta({ id: 'Delivery' }),
);

const example = {
  deliveryId: 'ob_0199e0a0-7c00-7000-8000-000000000001',
  endpoint: { channelType: 'irc', channelInstanceId: 'libera', conversationId: 'ada', conversationKind: 'direct' },
  state: 'pending',
  part: 1,
  parts: 1,
  text: 'It is done.',
  attempts: 1,
  platformId: null,
  errorKind: 'unknown',
  error: 'The connection ended before the server confirmed it',
  agentId: 'default',
  conversationRef: null,
  turnId: 'tn_0199e0a0-7c00-7000-8000-000000000001',
  createdAt: 1790000000000,
  notBefore: 1790000000000,
  endedAt: null,
} as const;

export const delivery = {
  'delivery.queue.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Counts messages to chat platforms by stage.',
    description: 'Those that ended are counted for 30 days.',
    params: () => z.strictObject({ channel_type: ChannelType.optional() }),
    result: () => {
      const count = z.int().min(0);
      return z.strictObject({
        pending: count.describe('Waits to be sent, also those of `held`.'),
        inFlight: count,
        failed: count.describe('Refused by the platform.'),
        delivered: count,
        expired: count.describe('Could not be sent in time.'),
        unknown: count.describe('May have been sent: an operator decides.'),
        held: count.describe('Waits for the end of quiet hours, or for an earlier part of the same message.'),
      });
    },
    examples: [{ params: {}, result: { pending: 0, inFlight: 0, failed: 0, delivered: 12, expired: 0, unknown: 0, held: 0 } }],
    since: '0.1.0',
  }),
  'delivery.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists messages to chat platforms, newest first.',
    params: () =>
      z.strictObject({
        state: z.enum(deliveryStates).optional(),
        channel_instance_id: InstanceId.optional(),
        offset: z.int().min(0).default(0),
        limit: z.int().min(1).max(200).default(50),
      }),
    result: () => z.strictObject({ deliveries: z.array(Delivery()), total: z.int().min(0) }),
    examples: [{ params: { state: 'unknown' }, result: { deliveries: [], total: 0 } }],
    since: '0.1.0',
  }),
  'delivery.resend': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Sends a message again that was refused, expired, or may have been sent, with the later parts that it holds.',
    params: () => z.strictObject({ deliveryId: z.string().min(1).max(64) }),
    result: () => Delivery(),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { deliveryId: example.deliveryId }, result: example }],
    since: '0.1.0',
  }),
  'delivery.settle': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Decides about a message that may have been sent: it was, or it is given up.',
    description: 'As `accepted`, the later parts that it holds are sent.',
    params: () => z.strictObject({ deliveryId: z.string().min(1).max(64), as: z.enum(['accepted', 'rejected']) }),
    result: () => Delivery(),
    errors: ['not_found', 'precondition_failed'],
    examples: [
      {
        params: { deliveryId: example.deliveryId, as: 'accepted' },
        result: { ...example, state: 'accepted', notBefore: null, endedAt: 1790000001000 },
      },
    ],
    since: '0.1.0',
  }),
};
