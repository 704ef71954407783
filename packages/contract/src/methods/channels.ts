import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { ChannelCapabilities, ChannelState, channelVerdicts } from '../shared/channel.ts';
import { AgentId, ChannelEndpoint, ConversationRef } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const ChannelType = z.string().min(1).max(32);
const InstanceId = z.string().min(1).max(64);
const offset = z.int().min(0).default(0);
const limit = z.int().min(1).max(200).default(50);

/** Names an instance; the type alone is enough while it has one. */
const named = {
  channel_type: ChannelType,
  channel_instance_id: InstanceId.optional().describe('Needed when several instances have this type.'),
};

const Channel = once(() =>
  z
    .strictObject({
      channelType: ChannelType,
      channelInstanceId: InstanceId,
      status: z.enum(['enabled', 'disabled']).describe('As configured.'),
      state: ChannelState(),
    })
    .meta({ id: 'Channel' }),
);

const ChannelHealth = once(() =>
  z
    .strictObject({
      channelType: ChannelType,
      channelInstanceId: InstanceId,
      state: ChannelState(),
      connectionMode: z.enum(['socket', 'poll', 'built-in']),
      account: z.string().nullable().describe('How the platform calls the agent, while it is connected.'),
      lastCheckedAt: EpochMs.nullable().describe('The last proof that the peer is alive.'),
      lastMessageAt: EpochMs.nullable().describe('The last message that was taken in.'),
      lastSentAt: EpochMs.nullable().describe('The last message that the platform accepted.'),
      error: z.string().nullable().describe('Why the connection ended last.'),
      retryAt: EpochMs.nullable().describe(
        'When it connects again; null while it is connected, or when no try is made before a change or a restart.',
      ),
      stateChangedAt: EpochMs,
      consecutiveFailures: z.int().min(0),
      activeRuns: z.int().min(0).describe('Messages whose turn waits or runs.'),
      restartAttempts: z.int().min(0).describe('Connects since the start of the daemon, beyond the first.'),
      uptimeMs: z.int().min(0).describe('Since it is connected; 0 otherwise.'),
      dropped: z.record(z.string(), z.int().min(1)).describe('Messages that started no turn since the start of the daemon, by reason.'),
      held: z.int().min(0).describe('Parts of messages waiting for the end of quiet hours.'),
      queued: z.int().min(0).describe('Parts of messages waiting to be sent, or being sent.'),
    })
    .meta({ id: 'ChannelHealth' }),
);

const Switched = once(() => z.strictObject({ channelType: ChannelType, status: z.enum(['enabled', 'disabled']), message: z.string() }));

const ChannelMessage = once(() =>
  z
    .strictObject({
      messageId: z.string().describe('`cm_…`'),
      endpoint: ChannelEndpoint,
      senderId: z.string(),
      senderName: z.string(),
      text: z.string().describe('Truncated to 2,000 characters.'),
      verdict: z.enum(channelVerdicts).describe('`turn`, or why it started none.'),
      agentId: AgentId,
      conversationRef: ConversationRef.nullable(),
      state: z.string().nullable().describe('State of its turn; null when it started none.'),
      sentAt: EpochMs,
      receivedAt: EpochMs,
    })
    .meta({ id: 'ChannelMessage' }),
);

const Pairing = once(() =>
  z
    .strictObject({
      pairingId: z.string().describe('`pr_…`'),
      channelType: ChannelType,
      channelInstanceId: InstanceId,
      senderId: z.string().describe('The id on the platform, which is what is paired; names can be forged.'),
      senderName: z.string(),
      state: z.enum(['pending', 'approved']),
      person: z.string().nullable(),
      principalId: z.string().nullable().describe('Who the sender is here; null until approved.'),
      requestedAt: EpochMs,
      expiresAt: EpochMs.nullable().describe('Of a pending request.'),
    })
    .meta({ id: 'Pairing' }),
);

const irc = { channelType: 'irc', channelInstanceId: 'libera' } as const;
const pairing = {
  pairingId: 'pr_0199e0a0-7c00-7000-8000-000000000001',
  ...irc,
  senderId: 'account:ada',
  senderName: 'ada',
  state: 'approved',
  person: 'ada',
  principalId: 'person:ada',
  requestedAt: 1790000000000,
  expiresAt: null,
} as const;

export const channels = {
  'channels.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the channels: the built-in one and the instances of `channels` in the configuration.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ channels: z.array(Channel()), total: z.int().min(0) }),
    examples: [{ params: {}, result: { channels: [{ ...irc, status: 'enabled', state: 'healthy' }], total: 1 } }],
    since: '0.1.0',
  }),
  'channels.get': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns one channel.',
    params: () => z.strictObject(named),
    result: () => Channel().extend({ configured: z.boolean().describe('False for the built-in channel.'), agentId: AgentId.nullable() }),
    errors: ['not_found', 'invalid_params'],
    examples: [
      {
        params: { channel_type: 'irc' },
        result: { ...irc, status: 'enabled', state: 'healthy', configured: true, agentId: 'default' },
      },
    ],
    since: '0.1.0',
  }),
  'channels.capabilities': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns what a platform offers.',
    params: () => z.strictObject({ channel_type: ChannelType }),
    result: () => ChannelCapabilities(),
    errors: ['not_found'],
    examples: [
      {
        params: { channel_type: 'irc' },
        result: {
          channelType: 'irc',
          features: {
            reactions: false,
            editMessages: false,
            deleteMessages: false,
            fetchHistory: false,
            attachments: false,
            buttons: false,
            polls: false,
            voiceNotes: false,
            typing: false,
            mentions: true,
          },
          limits: { text: 400, textUnit: 'bytes', attachmentBytes: 0 },
          streaming: 'none',
          threading: 'none',
          chatTypes: ['direct', 'shared'],
          sendKey: 'label',
          actions: [],
        },
      },
    ],
    since: '0.1.0',
  }),
  'channels.health': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns how each channel is: its transport, what came in, and what went out.',
    description: 'The three are kept apart: a message that was sent proves nothing about what comes in. Errors are for tokens with `admin`.',
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        channels: z.array(ChannelHealth()),
        timestamp: EpochMs,
        enabled: z.boolean().describe('Whether a platform is configured and enabled.'),
        bounds: z
          .strictObject({
            queued: z.int().describe('Parts waiting to be sent over all channels.'),
            queuedOfConversation: z.int().describe('Parts waiting to be sent to one conversation.'),
            heldOfConversation: z.int().describe('Messages waiting for the end of quiet hours in one conversation.'),
          })
          .describe('What may wait at most; further messages are refused (`queue_full`), with an alert.'),
      }),
    examples: [
      {
        params: {},
        result: {
          channels: [
            {
              ...irc,
              state: 'healthy',
              connectionMode: 'socket',
              account: 'my-agent',
              lastCheckedAt: 1790000000000,
              lastMessageAt: null,
              lastSentAt: null,
              error: null,
              retryAt: null,
              stateChangedAt: 1790000000000,
              consecutiveFailures: 0,
              activeRuns: 0,
              restartAttempts: 0,
              uptimeMs: 60000,
              dropped: {},
              held: 0,
              queued: 0,
            },
          ],
          timestamp: 1790000000000,
          enabled: true,
          bounds: { queued: 10_000, queuedOfConversation: 1_000, heldOfConversation: 100 },
        },
      },
    ],
    since: '0.1.0',
  }),
  ...switches(),
  'channels.messages': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists messages that came in, newest first, with the reason of those that started no turn.',
    description: 'Messages of a group that do not mention the agent are counted in `channels.health`, not kept. Kept for 30 days.',
    params: () => z.strictObject({ channel_instance_id: InstanceId.optional(), offset, limit }),
    result: () => z.strictObject({ messages: z.array(ChannelMessage()), total: z.int().min(0) }),
    examples: [{ params: { limit: 10 }, result: { messages: [], total: 0 } }],
    since: '0.1.0',
  }),
  'channels.retry': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Starts the turn of a message that started none because its agent was suspended, or too many messages waited.',
    description: 'Its sender must still be one who may write, and the agent must not be suspended.',
    params: () => z.strictObject({ messageId: z.string().min(1).max(64).describe('`cm_…`, of `channels.messages`.') }),
    result: () => z.strictObject({ messageId: z.string(), verdict: z.literal('turn') }),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [
      {
        params: { messageId: 'cm_0199e0a0-7c00-7000-8000-000000000001' },
        result: { messageId: 'cm_0199e0a0-7c00-7000-8000-000000000001', verdict: 'turn' },
      },
    ],
    since: '0.1.0',
  }),
  'channels.pairings': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists who may write to agents over channels, and pending requests, which come first.',
    params: () => z.strictObject({ state: z.enum(['pending', 'approved']).optional(), offset, limit }),
    result: () => z.strictObject({ pairings: z.array(Pairing()), total: z.int().min(0) }),
    examples: [{ params: {}, result: { pairings: [pairing], total: 1 } }],
    since: '0.1.0',
  }),
  'channels.pair': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Approves a pairing request by the code that its sender was shown.',
    description:
      'Covers direct messages only. With `person`, the sender is that person: conversations, memories, approvals and budgets are shared with the tokens of the person. After five wrong codes in an hour further codes of the caller are refused.',
    params: () =>
      z.strictObject({
        code: z.string().min(8).max(16),
        person: z
          .string()
          .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'expected the name of a person: lower-case letters, digits, "-" or "_"')
          .optional(),
      }),
    result: () => Pairing(),
    errors: ['not_found', 'rate_limited'],
    examples: [{ params: { code: 'K7QM2XPA', person: 'ada' }, result: pairing }],
    since: '0.1.0',
  }),
  'channels.unpair': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Ends a pairing, or refuses a request.',
    description:
      'What the sender wrote before is kept. Messages that no turn has taken up are not answered, and nothing more is sent to the conversation; a turn that runs, or waits for its agent, ends.',
    params: () => z.strictObject({ pairingId: z.string().min(1).max(64) }),
    result: () => z.strictObject({ pairingId: z.string(), removed: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { pairingId: pairing.pairingId }, result: { pairingId: pairing.pairingId, removed: true } }],
    since: '0.1.0',
  }),
};

function switches() {
  const declare = <Name extends 'enable' | 'disable' | 'restart'>(name: Name, summary: string, description: string, status: 'enabled' | 'disabled') =>
    method({
      scope: 'admin',
      risk: name === 'disable' ? 'destructive' : 'mutate',
      summary,
      description,
      params: () => z.strictObject(named),
      result: () => Switched(),
      errors: ['not_found', 'invalid_params', 'precondition_failed'],
      examples: [{ params: { channel_type: 'irc' }, result: { channelType: 'irc', status, message: `libera: ${status}` } }],
      since: '0.1.0',
    });
  return {
    'channels.enable': declare(
      'enable',
      'Enables a channel in the configuration and connects it.',
      'Writes `channels.<instance>.enabled`.',
      'enabled',
    ),
    'channels.disable': declare(
      'disable',
      'Disables a channel in the configuration and disconnects it.',
      'Writes `channels.<instance>.enabled`; pending messages stay until they expire.',
      'disabled',
    ),
    'channels.restart': declare('restart', 'Connects a channel again, also one that gave up.', 'Touches no other channel.', 'enabled'),
  };
}
