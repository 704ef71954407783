import * as z from 'zod';
import { once } from '../once.ts';

const count = z.int().min(0);

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
      limits: z.strictObject({ text: count.describe('Of one message, in `textUnit`.'), textUnit: z.enum(['utf16', 'bytes']), attachmentBytes: count }),
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
