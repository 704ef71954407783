import { AgentId, ChannelEndpoint, ModelName, once, ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { isSigningSecret } from './intake/signature.ts';

export const presetNames = ['github', 'gmail'] as const;
export type PresetName = (typeof presetNames)[number];

/** Id of the rule that takes deliveries of the strict route that no mapping matches. */
export const strictId = 'webhook';

const Algorithm = once(() => z.enum(['sha256', 'sha384', 'sha512']));
const HeaderName = once(() =>
  z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name')
    .transform((name) => name.toLowerCase()),
);
const Secret = once(() => z.string().min(32, 'expected at least 32 characters').meta({ secret: true }));

/** Rejects a `headerName` that differs from `signatureHeader`. */
function refuseTwoHeaders(
  { headerName, signatureHeader }: { readonly headerName?: string | undefined; readonly signatureHeader?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (headerName !== undefined && signatureHeader !== undefined && headerName !== signatureHeader)
    context.addIssue({
      code: 'custom',
      path: ['headerName'],
      message: `is an alias of signatureHeader, which is "${signatureHeader}"; set one of them`,
    });
}

const Template = (max: number) => z.string().min(1).max(max);

export const WebhookMapping = once(() =>
  z
    .strictObject({
      id: z
        .string()
        .min(1)
        .max(128)
        .regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters without spaces')
        .describe('Names the mapping in answers and lists; the principal of its turns derives from it.'),
      name: z.string().min(1).max(200).optional().describe('Name shown to users.'),
      match: z
        .strictObject({
          path: z
            .string()
            .min(1)
            .max(1024)
            .regex(/^[\w.~!$&'()*+,;=:@%/-]+$/, 'expected the characters of a path as sent, with all others percent-encoded')
            .optional()
            .describe('Path after `webhooks.path`; leading and trailing slashes and letter case are ignored.'),
          source: z.string().min(1).max(256).optional().describe('Value of the field `source` of the payload.'),
        })
        .prefault({})
        .describe('Both must match when both are set; without either the mapping matches everything.'),
      preset: z
        .enum(presetNames)
        .optional()
        .describe('Headers, body formats and texts of a known sender; values set in the mapping take precedence.'),
      action: z.enum(['agent', 'wake']).default('agent').describe('`agent` starts a turn, `wake` a heartbeat.'),
      wakeMode: z.enum(['now', 'next-heartbeat']).optional().describe('For `wake`: immediately (default) or with the next beat.'),
      agentId: AgentId.optional().describe('Agent of the mapping. Default: the default agent.'),
      sessionKey: Template(2_000).optional().describe('Template of the conversation key. Default: one conversation for the whole mapping.'),
      messageTemplate: Template(16_000).optional().describe('Template of the message. Default: a summary of the payload.'),
      dedupeKey: Template(2_000).optional().describe('Template of the delivery id, for senders without `x-github-delivery` or `webhook-id`.'),
      replay: z
        .enum(['exact', 'body', 'signed'])
        .default('exact')
        .describe(
          'What counts as the same delivery within 24 hours: `exact`: id or timestamp, and body; `body`: only the body; `signed`: signatures and ids of Standard Webhooks.',
        ),
      secret: Secret().optional().describe('Overrides `webhooks.token`; starts with `whsec_` when `replay` is `signed`.'),
      signatureHeader: HeaderName().optional().describe('Overrides `webhooks.signatureHeader`.'),
      headerName: HeaderName().optional().describe('Alias of `signatureHeader`.'),
      algorithm: Algorithm().optional().describe('Overrides `webhooks.algorithm`.'),
      allowUnauthenticated: z
        .boolean()
        .default(false)
        .describe('Accepts requests without a signature even when the port is reachable by others, if neither `secret` nor `webhooks.token` is set.'),
      model: ModelName.optional().describe("Model of its turns. Default: the agent's."),
      timeoutSeconds: z.int().min(1).max(86_400).optional().describe("Maximum duration of a turn. Default: the agent's."),
      tools: ToolPolicy.optional().describe("Tools of its turns, within the agent's own."),
      target: ChannelEndpoint.optional().describe('Chat of a configured channel that gets the answers of its turns. Default: nobody gets them.'),
    })
    .superRefine((mapping, context) => {
      refuseTwoHeaders(mapping, context);
      const refuse = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
      if (mapping.action === 'wake') {
        for (const key of ['sessionKey', 'model', 'timeoutSeconds', 'tools', 'target'] as const)
          if (mapping[key] !== undefined) refuse(key, 'has no effect when `action` is `wake`, which starts no separate turn');
      } else if (mapping.wakeMode !== undefined) refuse('wakeMode', 'has no effect unless `action` is `wake`');
      if (mapping.replay === 'signed') {
        if (mapping.secret === undefined) refuse('secret', 'is missing; `replay: signed` needs one that starts with whsec_');
        else if (!isSigningSecret(mapping.secret))
          refuse('secret', 'expected whsec_ followed by 24 to 64 bytes in base64, because `replay` is `signed`');
        for (const key of ['signatureHeader', 'headerName', 'algorithm', 'dedupeKey'] as const)
          if (mapping[key] !== undefined) refuse(key, 'has no effect when `replay` is `signed`: Standard Webhooks defines it');
        if (mapping.preset === 'github') refuse('replay', 'expected `exact` or `body`: GitHub uses its own signature scheme');
      }
    }),
);
export type WebhookMapping = z.output<ReturnType<typeof WebhookMapping>>;

/** Section `webhooks` of config.yaml (http-gateway.md §2.10, decisions §6). */
export const WebhooksConfig = once(() =>
  z
    .strictObject({
      enabled: z.boolean().optional().describe('False: no webhooks are accepted. Default: true when a token, presets or mappings are set.'),
      path: z
        .string()
        .max(256)
        .regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'expected a path such as /hooks, without a trailing slash')
        .refine((path) => !/^\/(?:v1|api|media|assets|rpc|ws|mcp|health|metrics)(?:\/|$)/.test(path), 'is a path used by the gateway itself')
        .default('/hooks')
        .meta({ apply: 'restart' })
        .describe('Path prefix of the webhook routes.'),
      token: Secret().optional().describe('Shared secret of the signatures, at least 32 characters. Without it the strict route answers 401.'),
      signatureHeader: HeaderName()
        .optional()
        .describe('Header of the signature: hex, bare or prefixed with `sha256=`. Default: `x-webhook-signature`.'),
      headerName: HeaderName().optional().describe('Alias of `signatureHeader`.'),
      timestampHeader: HeaderName().default('x-webhook-timestamp').describe('Header of the time of sending, in Unix seconds.'),
      maxAgeSec: z.int().min(1).max(86_400).default(300).describe('Maximum difference in seconds between a timestamp and now.'),
      requireTimestamp: z.boolean().default(false).describe('Rejects requests without a timestamp, except those of GitHub, which have none.'),
      signedTimestamp: z
        .boolean()
        .default(false)
        .describe('The sender signs `<timestamp>.<body>` instead of the body, so that nobody else can renew the timestamp, which is then required.'),
      algorithm: Algorithm().default('sha256').describe('Hash of the HMAC.'),
      maxBodyBytes: z
        .int()
        .min(1024)
        .max(26_214_400)
        .optional()
        .describe('Largest body, in bytes. Default: `gateway.httpBodyLimitBytes`; the github preset takes up to 25 MiB.'),
      rateLimit: z
        .strictObject({
          windowMs: z.int().min(100).max(86_400_000).optional().describe('Default: `gateway.rateLimit.windowMs`.'),
          maxRequests: z.int().min(1).max(100_000_000).optional().describe('Default: ten times `gateway.rateLimit.maxRequests`.'),
        })
        .prefault({})
        .describe('Maximum webhooks per address and window. Those without a valid signature also count against `gateway.rateLimit`.'),
      presets: z
        .array(
          z
            .string()
            .min(1)
            .max(64)
            .transform((name) => name.toLowerCase()),
        )
        .max(16)
        .default([])
        .describe('Predefined mappings: `github`, `gmail`, each at the path of its name. Others are ignored with a warning.'),
      mappings: z.array(WebhookMapping()).max(500).default([]).describe('Rules in order; the first that matches takes the delivery.'),
    })
    .superRefine(({ mappings, ...section }, context) => {
      refuseTwoHeaders(section, context);
      for (const [index, { id }] of mappings.entries()) {
        const wrong = (message: string) => context.addIssue({ code: 'custom', path: ['mappings', index, 'id'], message });
        if (id === strictId) wrong(`is the id of the strict route's own rule; choose another`);
        else if (mappings.findIndex((other) => other.id === id) < index) wrong('is the id of an earlier mapping; each needs its own');
      }
    }),
);
export type WebhooksConfig = z.output<ReturnType<typeof WebhooksConfig>>;
