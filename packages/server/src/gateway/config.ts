import { OwnerLimits, PersonName, TokenCompat, TokenId, TokenScope } from '@gatehouse/contract';
import * as z from 'zod';
import { isAddressRange } from './address.ts';
import { McpConfig } from './mcp/config.ts';

const Window = (maxRequests: number) =>
  z.strictObject({
    windowMs: z.int().min(1).default(60_000).describe('Length of the window, in milliseconds.'),
    maxRequests: z.int().min(1).default(maxRequests).describe('Requests per window and key (token when valid, else address).'),
  });

/** Section `gateway` of config.yaml. */
export const GatewayConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('False: no listener; the daemon still runs and the command line talks to its owner-only socket.'),
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on.'),
  port: z.int().min(0).max(65535).default(4766).describe('Port to listen on; 0 picks a free one.'),
  tokens: z
    .array(
      z.strictObject({
        id: TokenId(),
        secret: z.string().min(32).describe('At least 32 characters; "${NAME}" takes it from the environment.').meta({ secret: true }),
        scopes: z.array(TokenScope).default([]).describe('An empty list means all scopes.'),
        agents: z.array(z.string()).min(1).optional().describe('The only agents that the token may reach.'),
        expiresAt: z.int().min(0).optional().describe('End of validity, in milliseconds since the epoch.'),
        compat: TokenCompat().optional().describe('Overrides `gateway.compat` for this token.'),
        person: PersonName()
          .optional()
          .describe('The person that the token belongs to: conversations, memories, approvals and budgets are those of the person.'),
        ...OwnerLimits(),
      }),
    )
    .default([])
    .meta({ apply: 'live' })
    .describe('Access tokens in addition to the one created at first start and those from tokens.create.'),
  web: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Serve the routes under /api and the dashboard.'),
      distPath: z
        .string()
        .min(1)
        .optional()
        .describe('Folder of another build of the dashboard, relative to the home folder; by default the one next to the daemon.'),
    })
    .prefault({}),
  tls: z
    .strictObject({
      certPath: z.string().min(1).describe('PEM file of the certificate and its chain; relative paths start at the home folder.'),
      keyPath: z.string().min(1).describe('PEM file of its private key, without a passphrase and not readable by all.'),
      caPath: z.string().min(1).optional().describe('PEM file of the authority that signs client certificates.'),
      requireClientCert: z.boolean().default(false).describe('Accept only clients with a certificate of caPath; they still need a token.'),
      minVersion: z.enum(['TLSv1.2', 'TLSv1.3']).default('TLSv1.2').describe('Oldest TLS version that is accepted.'),
    })
    .optional()
    .describe('HTTPS instead of HTTP; the files are reloaded when they change.'),
  publicUrl: z
    .string()
    .refine(
      (text) => /^https?:\/\/[^/\s?#@]+\/?$/i.test(text) && URL.canParse(text),
      'expected an address without a path, such as https://gate.example.org',
    )
    .optional()
    .meta({ apply: 'live' })
    .describe(
      'Address at which browsers and other programs reach the gateway, when it differs from host and port (behind a proxy). Its host need not be in allowedHosts.',
    ),
  allowedHosts: z
    .array(z.string().min(1))
    .default([])
    .meta({ apply: 'live' })
    .describe('Additional Host names that the gateway answers to, for use behind a proxy.'),
  corsOrigins: z
    .array(
      z
        .string()
        .regex(
          /^[a-z][a-z\d+.-]*:\/\/[^/\s*]+\/?$/i,
          'expected an origin such as https://app.example.org; "*" is not allowed, because it would admit every page',
        ),
    )
    .default([])
    .meta({ apply: 'live' })
    .describe('Origins of web pages, other than its own, that may call the gateway.'),
  trustedProxies: z
    .array(z.string().refine((text) => isAddressRange(text), 'expected an IP address or a range such as 10.0.0.0/8'))
    .default([])
    .meta({ apply: 'live' })
    .describe('Addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted.'),
  rateLimit: Window(100).prefault({}).meta({ apply: 'live' }).describe('Global HTTP limiter; /health and /api/health are exempt.'),
  httpBodyLimitBytes: z.int().min(1024).max(1_073_741_824).default(1_048_576).meta({ apply: 'live' }).describe('Largest request body, in bytes.'),
  wsMessageRateLimit: z
    .strictObject({
      maxMessages: z.int().min(1).default(60).describe('Messages per window and connection; each entry of a batch counts.'),
      windowMs: z.int().min(1).default(60_000).describe('Length of the sliding window, in milliseconds.'),
    })
    .prefault({})
    .meta({ apply: 'live' }),
  wsMaxMessageBytes: z
    .int()
    .min(1024)
    .max(67_108_864)
    .default(1_048_576)
    .describe('Largest WebSocket frame, in bytes, on `/ws` and `/v1/responses`; a longer one closes its socket with 1009.'),
  wsMaxInFlight: z.int().min(1).max(10_000).default(64).meta({ apply: 'live' }).describe('Calls that one connection may have running.'),
  maxConnections: z.int().min(1).max(1_000_000).default(10_000).describe('Open sockets in all; fewer where the system allows few open files.'),
  maxEventStreams: z.int().min(1).max(1_000_000).default(5_000).describe('Open streams of /api/events in all; one token may hold half of them.'),
  mcp: McpConfig.prefault({}),
  drainTimeoutMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(60_000)
    .meta({ apply: 'live' })
    .describe('How long a stop waits for running turns, in milliseconds.'),
  compat: z
    .strictObject({
      fields: z
        .enum(['strict', 'extended'])
        .default('strict')
        .describe('Fields of a chat completion: the strict set, or also those that clients commonly send (tools, images, sampling).'),
      tools: z.enum(['agent', 'none']).default('agent').describe('Whether turns of /v1 may use the agent’s tools.'),
      models: z
        .record(z.string().regex(/^[^*]+\*?$/, 'expected the name of a model, or its beginning and "*"'), z.string().min(1))
        .default({})
        .describe('Other names of models in /v1 requests: a name, or its beginning and "*", to a provider/model, a model id or an agent id.'),
    })
    .prefault({})
    .meta({ apply: 'live' })
    .describe('Behavior of the /v1 routes; a token may have its own (gateway.tokens, tokens.create).'),
});
export type GatewayConfig = z.output<typeof GatewayConfig>;
