import * as z from 'zod';
import type { PlatformActions } from '../platform-action.ts';

const MessageId = () => z.string().min(3).max(256).describe('Message-ID of a mail of the conversation.');

/** Actions of `email.action`. */
export const emailActions = {
  mark_read: {
    risk: 'mutate',
    summary: 'Marks a mail as read, or as unread.',
    params: () => z.strictObject({ message_id: MessageId(), read: z.boolean().default(true) }),
    result: () => z.strictObject({ marked: z.literal(true), message_id: z.string(), read: z.boolean() }),
  },
  move: {
    risk: 'mutate',
    summary: 'Moves a mail to another mailbox.',
    params: () => z.strictObject({ message_id: MessageId(), mailbox: z.string().min(1).max(255).describe('Name of an existing mailbox.') }),
    result: () => z.strictObject({ moved: z.literal(true), message_id: z.string(), mailbox: z.string() }),
  },
  flag: {
    risk: 'mutate',
    summary: 'Flags a mail, or removes its flag.',
    params: () => z.strictObject({ message_id: MessageId(), flagged: z.boolean().default(true) }),
    result: () => z.strictObject({ marked: z.literal(true), message_id: z.string(), flagged: z.boolean() }),
  },
} satisfies PlatformActions;
