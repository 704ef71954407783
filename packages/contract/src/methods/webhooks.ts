import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from '../shared/session.ts';
import { EpochMs, FinishReason } from '../shared/turn.ts';
import { EffectsRefused, FailureCause, WorkWaiting } from '../shared/waiting.ts';
import { WebhookDeliveryId, webhookDeliveryStates } from '../shared/webhook.ts';

const MappingId = once(() => z.string().min(1).max(160).describe('Id of a configured mapping or of a preset, or `webhook` for the strict route.'));

const RenderedKey = once(() =>
  z.string().nullable().describe('The rendered key; one with non-ASCII characters or longer than 200 is shortened and ends with `~` and a digest.'),
);

const DeliveryState = once(() =>
  z
    .enum(webhookDeliveryStates)
    .describe('`accepted`: pending; `unknown`: a crash made the outcome uncertain; `ignored`: nothing to do, such as for a ping.'),
);

/** One accepted webhook; kept for seven days. */
export const WebhookDelivery = once(() =>
  z
    .strictObject({
      deliveryId: WebhookDeliveryId,
      mapping: MappingId(),
      action: z.enum(['agent', 'wake']),
      state: DeliveryState(),
      agentId: AgentId,
      conversationRef: ConversationRef.nullable().describe('Conversation of its turn; null when it starts none.'),
      sessionKey: PrintedSessionKey.nullable(),
      renderedKey: RenderedKey(),
      senderId: z.string().nullable().describe('The id set by the sender.'),
      message: z.string().describe('The rendered text, truncated to 2,000 characters.'),
      bodyBytes: z.int().min(0),
      bodyDigest: z.string().describe('SHA-256 of the raw body, base64url.'),
      remoteAddress: z.string().nullable(),
      receivedAt: EpochMs,
      endedAt: EpochMs.nullable(),
      repeats: z.int().min(0).describe('Number of repeats, which were answered without effect.'),
      replayOf: WebhookDeliveryId.nullable().describe('The original delivery of a replay.'),
      turnId: z.string().nullable(),
      finishReason: FinishReason.nullable(),
      errorKind: z.string().nullable(),
      cause: FailureCause().optional(),
      waiting: WorkWaiting().optional().describe('Set while the delivery waits for its model provider or an approval.'),
      effectsRefused: EffectsRefused().optional(),
    })
    .meta({ id: 'WebhookDelivery' }),
);
export type WebhookDelivery = z.output<ReturnType<typeof WebhookDelivery>>;

const deliveryId = 'wd_0199e0a0-7c00-7000-8000-000000000001';
const example = {
  deliveryId,
  mapping: 'github',
  action: 'agent',
  state: 'done',
  agentId: 'default',
  conversationRef: 'cv_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  sessionKey: 'webhook%3A4XHTpXKf:webhook:hook%3Agithub%3A72d3162e',
  renderedKey: 'hook:github:72d3162e',
  senderId: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  message: 'GitHub event: issues\nAction: opened\nRepository: ada/engine\nSender: ada',
  bodyBytes: 9_412,
  bodyDigest: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  remoteAddress: '192.0.2.7',
  receivedAt: 1_790_000_000_000,
  endedAt: 1_790_000_004_000,
  repeats: 0,
  replayOf: null,
  turnId: 'tn_0199e0a0-7c00-7000-8000-000000000001',
  finishReason: 'stop',
  errorKind: null,
} as const;

/** Accepted webhooks (an extension of json-rpc.md; http-gateway.md §4.8). */
export const webhooks = {
  'webhooks.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the rules for webhooks in evaluation order.',
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        enabled: z.boolean(),
        path: z.string().describe('Path prefix of the routes.'),
        webhooks: z.array(
          z.strictObject({
            mapping: MappingId(),
            name: z.string().nullable(),
            path: z.string().nullable().describe('The path that it matches, after the prefix; null for all.'),
            source: z.string().nullable().describe('The `source` of payloads that it matches; null for all.'),
            preset: z.string().nullable(),
            action: z.enum(['agent', 'wake']),
            agentId: AgentId,
            signature: z.enum(['hmac', 'standard', 'none']).describe('How senders authenticate; `standard`: Standard Webhooks.'),
            replay: z.enum(['exact', 'body', 'signed']),
            builtIn: z.boolean().describe('Whether it comes from a preset or the strict route, not from a mapping.'),
            deliveries: z.int().min(0).describe('Deliveries accepted within the last seven days.'),
            lastDeliveryAt: EpochMs.nullable(),
          }),
        ),
        total: z.int().min(0),
      }),
    examples: [
      {
        params: {},
        result: {
          enabled: true,
          path: '/hooks',
          webhooks: [
            {
              mapping: 'github',
              name: null,
              path: 'github',
              source: null,
              preset: 'github',
              action: 'agent',
              agentId: 'default',
              signature: 'hmac',
              replay: 'exact',
              builtIn: true,
              deliveries: 12,
              lastDeliveryAt: 1_790_000_000_000,
            },
          ],
          total: 1,
        },
      },
    ],
    since: '0.1.0',
  }),
  'webhooks.deliveries': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the accepted webhooks, newest first, each with its turn; they are kept for seven days, at most 20,000.',
    params: () =>
      z.strictObject({
        mapping: MappingId().optional(),
        state: DeliveryState().optional(),
        limit: z.int().min(1).max(200).default(50),
        before: WebhookDeliveryId.optional().describe('The last delivery of the previous page.'),
      }),
    result: () => z.strictObject({ deliveries: z.array(WebhookDelivery()), hasMore: z.boolean() }),
    examples: [{ params: { mapping: 'github' }, result: { deliveries: [example], hasMore: false } }],
    since: '0.1.0',
  }),
  'webhooks.replay': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Runs a stored delivery again, in the same conversation, as a separate delivery.',
    description: 'Text, agent and conversation are those of the original delivery; model and tools are those of the current mapping.',
    params: () => z.strictObject({ deliveryId: WebhookDeliveryId }),
    result: () => z.strictObject({ deliveryId: WebhookDeliveryId, replayOf: WebhookDeliveryId }),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [{ params: { deliveryId }, result: { deliveryId: 'wd_0199e0a0-7c00-7000-8000-000000000002', replayOf: deliveryId } }],
    since: '0.1.0',
  }),
  'webhooks.test': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Shows how a mapping would read a payload; with `run` it is accepted like a real delivery.',
    description: 'Requires no signature. Without `run` nothing is stored and nothing runs.',
    params: () =>
      z.strictObject({
        mapping: MappingId(),
        payload: z.unknown().default({}),
        headers: z.record(z.string().max(256), z.string().max(8_192)).default({}).describe('Request headers, as seen by templates and presets.'),
        run: z.boolean().default(false),
      }),
    result: () =>
      z.strictObject({
        mapping: MappingId(),
        takenBy: MappingId().nullable().describe('The rule that would take such a delivery at the path of the mapping, which may be an earlier one.'),
        sessionKey: PrintedSessionKey.nullable().describe('Session key of the conversation; null when no turn starts.'),
        renderedKey: RenderedKey(),
        conversationRef: ConversationRef.nullable(),
        message: z.string(),
        senderId: z.string().nullable(),
        deliveryId: WebhookDeliveryId.nullable().describe('The new delivery; null without `run`.'),
      }),
    errors: ['not_found', 'unavailable'],
    examples: [
      {
        params: { mapping: 'github', payload: { action: 'opened', sender: { login: 'ada' } }, headers: { 'x-github-event': 'issues' } },
        result: {
          mapping: 'github',
          takenBy: 'github',
          sessionKey: example.sessionKey,
          renderedKey: example.renderedKey,
          conversationRef: example.conversationRef,
          message: 'GitHub event: issues\nAction: opened\nSender: ada',
          senderId: null,
          deliveryId: null,
        },
      },
    ],
    since: '0.1.0',
  }),
};
