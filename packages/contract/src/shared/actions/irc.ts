import * as z from 'zod';
import type { PlatformActions } from '../platform-action.ts';

const yes = z.literal(true);
const Name = z.string();
const Channel = z
  .string()
  .max(64)
  .regex(/^[#&+!][^\s,\0\x07]+$/, 'expected the name of a channel, such as #gatehouse');
/** One line of text. */
const Line = z
  .string()
  .max(300)
  .regex(/^[^\r\n\0]*$/, 'expected one line');

/** Actions of `irc.action`: those on the channel of the endpoint, and to join another one. */
export const ircActions = {
  join: {
    risk: 'mutate',
    summary: 'Joins a channel, until the connection ends',
    params: () =>
      z.strictObject({
        channel: Channel,
        key: z
          .string()
          .min(1)
          .max(64)
          .regex(/^[^\s:,\0][^\s,\0]*$/, 'expected one word')
          .optional()
          .describe('The password of the channel.'),
      }),
    result: () => z.strictObject({ joined: yes, channel: Name }),
  },
  part: {
    risk: 'destructive',
    summary: 'Leaves the channel',
    params: () => z.strictObject({ reason: Line.optional() }),
    result: () => z.strictObject({ parted: yes, channel: Name }),
  },
  topic: {
    risk: 'mutate',
    summary: 'Sets the topic of the channel',
    params: () => z.strictObject({ topic: Line }),
    result: () => z.strictObject({ topicSet: yes, channel: Name }),
  },
  names: {
    risk: 'read',
    summary: 'Lists who is in the channel',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ channel: Name, names: z.array(Name), total: z.int().min(0).describe('May be more than are listed.') }),
  },
  sendTyping: {
    risk: 'read',
    summary: 'Does nothing: IRC has no sign of typing',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ typing: z.literal(false) }),
  },
} as const satisfies PlatformActions;
