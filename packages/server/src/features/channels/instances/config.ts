import { AgentId, once } from '@gatehouse/contract';
import * as z from 'zod';

const Secret = once(() => z.string().min(1).max(512).meta({ secret: true }));
/** Text of one word on the wire of IRC. */
const Word = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^\s:][^\s]*$/, 'expected one word that does not begin with ":"');

/** Keys that every platform has: the agent, and the people that it answers. */
const people = () => ({
  enabled: z.boolean().default(true),
  agent: AgentId.optional().describe('The agent that answers; that of `routing.defaultAgentId` when absent.'),
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
  groups: z
    .strictObject({
      policy: z.enum(['enabled', 'disabled']).default('enabled'),
      requireMention: z.boolean().default(true).describe('Answer only messages that name the agent.'),
    })
    .prefault({}),
});

export const IrcInstance = once(() =>
  z.strictObject({
    type: z.literal('irc'),
    ...people(),
    host: z.string().min(1).max(255),
    port: z.int().min(1).max(65_535).default(6697),
    tls: z.boolean().default(true).describe('Without it everybody on the way reads along.'),
    tlsCaPath: z
      .string()
      .min(1)
      .optional()
      .describe('File with the certificates that the server may be signed by, in PEM; those of the system when absent.'),
    nick: Word,
    username: Word.optional(),
    realName: z.string().min(1).max(128).optional(),
    serverPassword: Secret().optional(),
    sasl: z.strictObject({ user: Word, password: Secret() }).optional().describe('Log in to the services of the network.'),
    channels: z
      .array(Word.regex(/^[#&+!]/, 'expected the name of a channel, such as #gatehouse'))
      .max(64)
      .default([])
      .describe('Channels to join.'),
  }),
);
export type IrcInstance = z.output<ReturnType<typeof IrcInstance>>;

const InstanceName = z.string().regex(/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, 'expected 1 to 32 lower-case letters, digits, "-" or "_"');

/** Section `channels` of config.yaml: instances by name. */
export const ChannelsConfig = once(() => z.record(InstanceName, z.discriminatedUnion('type', [IrcInstance()])));
export type ChannelsConfig = z.output<ReturnType<typeof ChannelsConfig>>;
export type InstanceConfig = ChannelsConfig[string];
