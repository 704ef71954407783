import * as z from 'zod';
import { once } from '../once.ts';

const count = z.int().min(0);

export const channelStates = ['healthy', 'startup-grace', 'disconnected', 'errored', 'unauthorized', 'disabled'] as const;
export type ChannelState = (typeof channelStates)[number];
/** `errored`: it cannot connect; `unauthorized`: the platform refuses the account, and no try is made before a change or a restart. */
export const ChannelState = once(() => z.enum(channelStates));

/** Outcome of the intake of a message: `turn`, or why it started none. */
export const channelVerdicts = ['turn', 'pairing', 'not_allowed', 'disabled', 'bot', 'bot_limit', 'suspended', 'full'] as const;
export type ChannelVerdict = (typeof channelVerdicts)[number];

/** States of one part of a message to a platform. */
export const deliveryStates = ['pending', 'sending', 'accepted', 'rejected', 'unknown', 'held', 'expired'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** States of a whole message to a platform, in the words of a job's delivery. */
export const messageStatuses = ['pending', 'accepted', 'partial', 'rejected', 'pre_send_failed', 'unknown'] as const;
export type MessageStatus = (typeof messageStatuses)[number];

export const notificationPriorities = ['low', 'normal', 'high', 'critical'] as const;
export type NotificationPriority = (typeof notificationPriorities)[number];
/** Why a notification was not sent (`quiet_hours`: not yet). */
export const notificationSuppressions = ['quiet_hours', 'rate_limited', 'duplicate', 'no_channel'] as const;

/** What a platform offers, as data: nothing outside of its wire asks for a platform by name. */
export const ChannelCapabilities = once(() =>
  z
    .strictObject({
      channelType: z.string(),
      features: z.strictObject({
        reactions: z.boolean(),
        editMessages: z.boolean(),
        deleteMessages: z.boolean(),
        fetchHistory: z.boolean(),
        attachments: z.boolean(),
        buttons: z.boolean(),
        polls: z.boolean(),
        voiceNotes: z.boolean(),
        typing: z.boolean(),
        mentions: z.boolean(),
      }),
      limits: z.strictObject({
        text: count.describe('Of one message, in `textUnit`.'),
        textUnit: z.enum(['utf16', 'bytes']),
        attachmentBytes: count,
      }),
      streaming: z.enum(['edits', 'blocks', 'none']),
      threading: z.enum(['native', 'replies', 'none']),
      chatTypes: z.array(z.enum(['direct', 'shared'])),
      sendKey: z
        .enum(['nonce', 'transaction', 'lookup', 'label', 'none'])
        .describe('How a send whose answer was lost is found out; with `none` it becomes `unknown`.'),
      actions: z.array(z.string()).describe('Of `<platform>.action`.'),
    })
    .meta({ id: 'ChannelCapabilities' }),
);
export type ChannelCapabilities = z.output<ReturnType<typeof ChannelCapabilities>>;
