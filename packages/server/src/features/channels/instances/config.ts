import { AgentId, once, QuietHours } from '@gatehouse/contract';
import * as z from 'zod';
import { discordKeys } from '../../../channels/discord/config.ts';
import { emailKeys } from '../../../channels/email/config.ts';
import { ircKeys } from '../../../channels/irc/config.ts';
import { matrixKeys } from '../../../channels/matrix/config.ts';
import { slackKeys } from '../../../channels/slack/config.ts';
import { telegramKeys } from '../../../channels/telegram/config.ts';

/** What one group has different from all. */
const groupChat = () =>
  z.strictObject({
    enabled: z.boolean().default(true),
    agent: AgentId.optional().describe('The agent that answers there.'),
    requireMention: z.boolean().optional(),
    allowFrom: z
      .array(z.string().min(1).max(256))
      .optional()
      .describe('Ids of the only senders that are answered there, apart from owners; everybody when absent.'),
  });

/** Keys that every platform has: the agent, and the people that it answers. */
const people = () => ({
  enabled: z.boolean().default(true),
  agent: AgentId.optional().describe('The agent that answers; that of `routing.defaultAgentId` when absent.'),
  agents: z.array(AgentId).max(32).default([]).describe('Further agents: approved people choose one with `/agent NAME`, in groups owners.'),
  bots: z
    .enum(['off', 'mentions', 'all'])
    .default('off')
    .describe('Answer messages of other bots: never, those that name the agent, or as those of people. Bots command nothing.'),
  maxBotExchanges: z
    .int()
    .min(1)
    .max(100)
    .default(20)
    .describe('Messages of bots that are answered in a conversation until a person writes there, so that no loop continues.'),
  owners: z
    .array(z.string().min(1).max(256))
    .default([])
    .describe('Ids of senders whose words count as the operator’s. An id is what `channels.messages` shows, not a name.'),
  dm: z
    .strictObject({
      policy: z
        .enum(['pairing', 'allowlist', 'open', 'disabled'])
        .default('pairing')
        .describe('People who may write directly: senders approved with a code, those of `allowFrom`, everybody, or nobody.'),
      allowFrom: z.array(z.string().min(1).max(256)).default([]).describe('Ids of senders who need no pairing.'),
    })
    .prefault({}),
  streaming: z
    .enum(['off', 'edits'])
    .default('off')
    .describe('Show answers in direct messages while they are written, in one message that is edited, where the platform has that.'),
  ackReaction: z
    .string()
    .min(1)
    .max(32)
    .optional()
    .describe('Emoji with which a message is marked while its answer is made, where the platform has reactions.'),
  onUnknown: z
    .enum(['park', 'resend'])
    .default('park')
    .describe(
      'What happens with a message that may have been sent, when nothing shows whether it was: it waits for the decision of a person, or it is sent once more, marked as a possible repeat.',
    ),
  maxParts: z
    .int()
    .min(1)
    .max(50)
    .optional()
    .describe(
      'Messages that one answer may be, at most; the rest of a longer one is sent as a file where the platform takes files. That of the platform when absent.',
    ),
  quietHours: QuietHours()
    .optional()
    .describe('When nothing is sent that nobody asked for: reports, announcements, notifications; never when absent.'),
  quietHoursOf: z
    .record(z.string().min(1).max(256), QuietHours())
    .default({})
    .describe('Quiet hours of single people and groups instead, by the id of the conversation that `channels.messages` shows.'),
  maxAgeMs: z
    .int()
    .min(60_000)
    .max(2_592_000_000)
    .default(3_600_000)
    .describe('Milliseconds after which a message is late: those of one sender, written while the channel was not connected, are answered together.'),
  typing: z.boolean().default(true).describe('Show that an answer is being written, where the platform has that.'),
  groups: z
    .strictObject({
      policy: z.enum(['enabled', 'allowlist', 'disabled']).default('enabled').describe('Groups that are answered: all, those of `chats`, or none.'),
      requireMention: z.boolean().default(true).describe('Answer only messages that name the agent.'),
      stickyThreads: z.boolean().default(true).describe('Answer without a mention in a thread in which the agent was asked within a day.'),
      chats: z
        .record(z.string().min(1).max(256), groupChat())
        .default({})
        .describe('Rules of single groups, by the id that `channels.messages` shows.'),
    })
    .prefault({}),
});

const instanceOf = <Type extends string, Keys extends z.ZodRawShape>(type: Type, keys: Keys) =>
  z.strictObject({ type: z.literal(type), ...people(), ...keys });

const InstanceName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, 'expected 1 to 32 lower-case letters, digits, "-" or "_"')
  .refine((name) => name !== 'gateway', 'expected another name than that of the built-in channel');

/** Section `channels` of config.yaml: instances by name. */
export const ChannelsConfig = once(() =>
  z.record(
    InstanceName,
    z.discriminatedUnion('type', [
      instanceOf('discord', discordKeys()),
      instanceOf('email', emailKeys()),
      instanceOf('irc', ircKeys()),
      instanceOf('matrix', matrixKeys()),
      instanceOf('slack', slackKeys()),
      instanceOf('telegram', telegramKeys()),
    ]),
  ),
);
export type ChannelsConfig = z.output<ReturnType<typeof ChannelsConfig>>;
export type InstanceConfig = ChannelsConfig[string];
