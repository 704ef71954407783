import { AgentId, ModelName, ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { isSigningSecret } from './intake/signature.ts';

export const presetNames = ['github', 'gmail'] as const;
export type PresetName = (typeof presetNames)[number];

/** Id of the rule that takes what no mapping wants of the strict route. */
export const strictId = 'webhook';

const Algorithm = z.enum(['sha256', 'sha384', 'sha512']);
const HeaderName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected the name of a header')
  .transform((name) => name.toLowerCase());
const Secret = z.string().min(32, 'expected at least 32 characters').meta({ secret: true });

/** Refuses `headerName` next to a `signatureHeader` that says something else. */
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

export const WebhookMapping = z
  .strictObject({
    id: z
      .string()
      .min(1)
      .max(128)
      .regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters without spaces')
      .describe('Names the mapping in answers and lists; the principal of its turns derives from it.'),
    name: z.string().min(1).max(200).optional().describe('For people.'),
    match: z
      .strictObject({
        path: z
          .string()
          .min(1)
          .max(1024)
          .regex(/^[\w.~!$&'()*+,;=:@%/-]+$/, 'expected what can stand in a path as it is sent: other characters percent-encoded')
          .optional()
          .describe('Path behind `webhooks.path`; slashes at its ends and the case of letters do not count.'),
        source: z.string().min(1).max(256).optional().describe('Value of the field `source` of the payload.'),
      })
      .prefault({})
      .describe('Both must match where both are set; without either the mapping takes everything.'),
    preset: z.enum(presetNames).optional().describe('Headers, forms of body and texts of a known sender; what the mapping sets itself wins.'),
    action: z.enum(['agent', 'wake']).default('agent').describe('`agent` begins a turn, `wake` a heartbeat.'),
    wakeMode: z.enum(['now', 'next-heartbeat']).optional().describe('Of `wake`: at once, which is the default, or with the next beat.'),
    agentId: AgentId.optional().describe('The default agent otherwise.'),
    sessionKey: Template(2_000).optional().describe('Template of the key of the conversation; one conversation for the whole mapping otherwise.'),
    messageTemplate: Template(16_000).optional().describe('Template of the message; a summary of the payload otherwise.'),
    dedupeKey: Template(2_000).optional().describe('Template of what names a delivery, where the sender has no `x-github-delivery` or `webhook-id`.'),
    replay: z
      .enum(['exact', 'body', 'signed'])
      .default('exact')
      .describe(
        'What counts as the same delivery within 24 hours: `exact`: id or timestamp, and body; `body`: the body alone; `signed`: signatures and ids of Standard Webhooks.',
      ),
    secret: Secret.optional().describe('In place of `webhooks.token`; begins with `whsec_` where `replay` is `signed`.'),
    signatureHeader: HeaderName.optional().describe('Overrides `webhooks.signatureHeader`.'),
    headerName: HeaderName.optional().describe('Alias of `signatureHeader`.'),
    algorithm: Algorithm.optional().describe('In place of `webhooks.algorithm`.'),
    allowUnauthenticated: z
      .boolean()
      .default(false)
      .describe('Takes requests without a signature also where others can reach the port, if neither `secret` nor `webhooks.token` is set.'),
    model: ModelName.optional().describe('Model of its turns; that of the agent otherwise.'),
    timeoutSeconds: z.int().min(1).max(86_400).optional().describe('Wall clock of a turn; that of the agent otherwise.'),
    tools: ToolPolicy.optional().describe("Tools of its turns, within the agent's own."),
  })
  .superRefine((mapping, context) => {
    refuseTwoHeaders(mapping, context);
    const refuse = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
    if (mapping.action === 'wake') {
      for (const key of ['sessionKey', 'model', 'timeoutSeconds', 'tools'] as const)
        if (mapping[key] !== undefined) refuse(key, 'has no use where `action` is `wake`, which begins no turn of its own');
    } else if (mapping.wakeMode !== undefined) refuse('wakeMode', 'has no use unless `action` is `wake`');
    if (mapping.replay === 'signed') {
      if (mapping.secret === undefined) refuse('secret', 'is missing; `replay: signed` needs one that begins with whsec_');
      else if (!isSigningSecret(mapping.secret))
        refuse('secret', 'expected whsec_ followed by 24 to 64 bytes in base64, because `replay` is `signed`');
      for (const key of ['signatureHeader', 'headerName', 'algorithm', 'dedupeKey'] as const)
        if (mapping[key] !== undefined) refuse(key, 'has no use where `replay` is `signed`: Standard Webhooks lays it down');
      if (mapping.preset === 'github') refuse('replay', 'expected `exact` or `body`: GitHub signs in a way of its own');
    }
  });
export type WebhookMapping = z.output<typeof WebhookMapping>;

/** Section `webhooks` of config.yaml (http-gateway.md §2.10, decisions §6). */
export const WebhooksConfig = z
  .strictObject({
    enabled: z.boolean().optional().describe('False: nothing is taken. True when a token, presets or mappings are there otherwise.'),
    path: z
      .string()
      .max(256)
      .regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'expected a path such as /hooks, without a slash at its end')
      .refine((path) => !/^\/(?:v1|api|media|assets|rpc|ws|mcp|health|metrics)(?:\/|$)/.test(path), 'is a path that the gateway uses itself')
      .default('/hooks')
      .describe('Where the routes begin.'),
    token: Secret.optional().describe('Shared secret of the signatures, at least 32 characters. Without it the strict route answers 401.'),
    signatureHeader: HeaderName.optional().describe('Header of the signature: hex, bare or behind `sha256=`. Default: `x-webhook-signature`.'),
    headerName: HeaderName.optional().describe('Alias of `signatureHeader`.'),
    timestampHeader: HeaderName.default('x-webhook-timestamp').describe('Header of the time of sending, in Unix seconds.'),
    maxAgeSec: z.int().min(1).max(86_400).default(300).describe('Seconds that a timestamp may be away from now.'),
    requireTimestamp: z
      .boolean()
      .default(false)
      .describe('Refuses requests without a timestamp; those of GitHub have none and are taken all the same.'),
    signedTimestamp: z
      .boolean()
      .default(false)
      .describe('The sender signs `<timestamp>.<body>` in place of the body, so that nobody else can renew the timestamp; it is then required.'),
    algorithm: Algorithm.default('sha256').describe('Hash of the HMAC.'),
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
      .describe('Webhooks that one address may send in a window. Those without a valid signature also count against `gateway.rateLimit`.'),
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
      .describe('Ready mappings: `github`, `gmail`, each at the path of its name. Others are passed over, with a warning.'),
    mappings: z.array(WebhookMapping).max(500).default([]).describe('Rules in order; the first that matches takes the delivery.'),
  })
  .superRefine(({ mappings, ...section }, context) => {
    refuseTwoHeaders(section, context);
    for (const [index, { id }] of mappings.entries()) {
      const wrong = (message: string) => context.addIssue({ code: 'custom', path: ['mappings', index, 'id'], message });
      if (id === strictId) wrong(`is the id of the strict route's own rule; choose another one`);
      else if (mappings.findIndex((other) => other.id === id) < index) wrong('is the id of an earlier mapping; each needs its own');
    }
  });
export type WebhooksConfig = z.output<typeof WebhooksConfig>;
