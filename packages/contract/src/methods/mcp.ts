import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

/** A doubled or trailing hyphen could make the callable names of two servers collide: `mcp__<server>--<tool>`. */
export const McpServerName = once(() =>
  z
    .string()
    .max(32)
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9_]|-(?![-]|$))*$/, 'expected 1 to 32 letters, digits, "_" or single "-", beginning with a letter or digit'),
);
export const mcpTransports = ['stdio', 'sse', 'http'] as const;

const Header = once(() =>
  z
    .string()
    .min(1)
    .max(8192)
    .regex(/^[\t\u0020-\u007e]*$/, 'expected printable ASCII'),
);
/** Headers of the requests to a remote server; names that belong to the connection or the protocol are refused by the server. */
export const McpHeaders = once(() =>
  z
    .record(
      z
        .string()
        .max(128)
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name'),
      Header(),
    )
    .refine((headers) => Object.keys(headers).length <= 32, 'expected at most 32 headers'),
);

const named = once(() => ({
  name: McpServerName().optional().describe('Name of the server; `server_name` and `serverId` are accepted as aliases.'),
  server_name: McpServerName().optional(),
  serverId: McpServerName().optional(),
}));
const remote = once(() => ({
  transport: z
    .enum(mcpTransports)
    .optional()
    .describe('`http` (streamable HTTP) or `sse`. A `stdio` server is a program: it is defined in config.yaml only, and is refused here.'),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional()
    .describe('Address of a remote server; the host must have public addresses.'),
  headers: McpHeaders().optional().describe('Headers of every request to it; kept encrypted and never shown.').meta({ secret: true }),
}));
const Status = once(() =>
  z
    .enum(['disconnected', 'connecting', 'connected', 'reconnecting', 'error', 'needs_authorization'])
    .describe('`needs_authorization`: the server accepts no request until `mcp.authorize` was completed in a browser.'),
);
const Scopes = once(() => z.array(z.string()).describe('OAuth scopes, as named by the server or its authorization server.'));
/** State of the authorization (OAuth) at a remote server. */
const Authorization = once(() =>
  z.strictObject({
    state: z
      .enum(['needed', 'pending', 'authorized'])
      .describe('`pending`: `mcp.authorize` returned an address, and nobody has completed it there yet.'),
    authorizedAt: EpochMs.optional(),
    scopes: Scopes().optional().describe('What the authorization allows, as far as the authorization server says.'),
    missingScopes: Scopes().optional().describe('What the server asked for in addition: authorize it again to allow it.'),
    failure: z.string().optional().describe('Why the last attempt failed.'),
    nextStep: z.string().optional().describe('What a person has to do; absent when there is nothing.'),
  }),
);

const row = once(() => ({
  name: McpServerName(),
  transport: z.enum(mcpTransports),
  source: z.enum(['config', 'stored']).describe('`config`: from config.yaml; `stored`: created by `mcp.connect`.'),
  enabled: z.boolean().describe('Whether it is connected when the daemon starts.'),
  status: Status(),
  toolCount: z.int().min(0),
  lastHealthCheck: EpochMs.nullable().describe('When it last answered; null: not yet.'),
  reconnectAttempt: z.int().min(0).describe('Attempts since the connection was lost.'),
  generation: z.int().min(0).describe('Incremented by each attempt to connect.'),
  agents: z.array(AgentId).optional().describe('The only agents that see its tools; all when absent.'),
  error: z.string().optional(),
  retryAt: EpochMs.optional().describe('When it is tried again; absent when no try is due.'),
  authorization: Authorization().optional().describe('Absent when the server has asked for none.'),
  capabilities: z.array(z.string()).optional().describe('Names of its declared capabilities.'),
  serverVersion: z.strictObject({ name: z.string(), version: z.string() }).optional().describe('As reported by the server.'),
}));
const connected = once(() => ({
  name: McpServerName(),
  status: Status(),
  toolCount: z.int().min(0),
  tools: z.array(z.string()).describe('Names as defined by the server.'),
}));
const exampleRow = {
  name: 'files',
  transport: 'stdio' as const,
  source: 'config' as const,
  enabled: true,
  status: 'connected' as const,
  toolCount: 1,
  lastHealthCheck: 1790000000000,
  reconnectAttempt: 0,
  generation: 1,
  capabilities: ['tools'],
  serverVersion: { name: 'files', version: '1.0.0' },
};
const exampleConnected = { name: 'search', status: 'connected' as const, toolCount: 1, tools: ['find'] };

export const mcp = {
  'mcp.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the MCP servers of config.yaml and the stored ones, with the state of their connections.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ servers: z.array(z.strictObject(row())), total: z.int().min(0) }),
    examples: [{ params: {}, result: { servers: [exampleRow], total: 1 } }],
    since: '0.1.0',
  }),
  'mcp.status': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the state of one MCP server and the tools that it offers.',
    description: 'Descriptions and instructions are text of the server, stripped of invisible characters and shortened.',
    params: () => z.strictObject(named()),
    result: () =>
      z.strictObject({
        ...row(),
        maxReconnectAttempts: z.int(),
        address: z.string().optional().describe('Origin of a remote server, or the program of a stdio server.'),
        headerNames: z.array(z.string()).optional().describe('Headers that are sent to a remote server, without their values.'),
        instructions: z.string().optional().describe('The server’s own usage notes, at most 4096 characters; not shown to any model.'),
        stderr: z.string().optional().describe('The end of the error output of a stdio server, redacted.'),
        droppedTools: z.int().min(0).describe('Tools that were omitted: beyond the limits, or not valid.'),
        tools: z.array(
          z.strictObject({
            name: z.string(),
            qualifiedName: z.string().describe('`mcp:<server>/<tool>`'),
            callableName: z.string().describe('`mcp__<server>--<tool>`: what a model calls, and what policies name.'),
            description: z.string().optional(),
            risk: z.enum(['read', 'write']).describe('`read` when `readOnlyTools` of the server names it.'),
          }),
        ),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { name: 'files' },
        result: {
          ...exampleRow,
          maxReconnectAttempts: 5,
          address: 'node',
          droppedTools: 0,
          tools: [
            {
              name: 'read_file',
              qualifiedName: 'mcp:files/read_file',
              callableName: 'mcp__files--read_file',
              description: 'Reads a file.',
              risk: 'write',
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'mcp.connect': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Connects an MCP server and returns the names of its tools; does nothing when it is connected.',
    description:
      'With only a name, the configured or stored server is connected. With `transport` and `url` a remote server is connected and, once that succeeded, stored: it is then connected at each start. A server that asks for authorization (OAuth) is stored too, with status `needs_authorization`: continue with `mcp.authorize`. Private addresses are refused.',
    params: () =>
      z.strictObject({
        ...named(),
        ...remote(),
        agents: z.array(AgentId).min(1).max(64).optional().describe('For a stored server: the only agents that see its tools.'),
      }),
    result: () => z.strictObject(connected()),
    errors: ['not_found', 'conflict', 'denied', 'unavailable', 'timeout'],
    examples: [{ params: { name: 'search', transport: 'http', url: 'https://mcp.example/mcp' }, result: exampleConnected }],
    since: '0.1.0',
  }),
  'mcp.disconnect': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Ends the connection to an MCP server, until someone connects it again.',
    description: 'A stored server stays disconnected after a restart, one of config.yaml is connected again then unless it says `enabled: false`.',
    params: () => z.strictObject({ ...named(), forget: z.boolean().default(false).describe('Also deletes a stored server.') }),
    result: () => z.strictObject({ name: McpServerName(), status: z.literal('disconnected'), forgotten: z.boolean() }),
    errors: ['not_found', 'precondition_failed', 'denied'],
    examples: [{ params: { name: 'search' }, result: { name: 'search', status: 'disconnected', forgotten: false } }],
    since: '0.1.0',
  }),
  'mcp.reconnect': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Closes the connection to an MCP server, if there is one, and opens it again.',
    description: 'An unknown server is connected when `transport` and `url` are given, as by `mcp.connect`.',
    params: () => z.strictObject({ ...named(), ...remote() }),
    result: () => z.strictObject(connected()),
    errors: ['not_found', 'conflict', 'denied', 'unavailable', 'timeout'],
    examples: [{ params: { server_name: 'search' }, result: exampleConnected }],
    since: '0.1.0',
  }),
  'mcp.test': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Opens a separate connection to an MCP server, measures a round trip, lists the tools and closes it again.',
    description: 'Takes at most 15 seconds. A failure is part of the result; wrong parameters are an error.',
    params: () => z.strictObject({ ...named(), ...remote() }),
    result: () =>
      z.discriminatedUnion('success', [
        z.strictObject({
          success: z.literal(true),
          latencyMs: z.number().min(0).describe('One ping round trip.'),
          toolCount: z.int().min(0),
          tools: z.array(z.string()),
        }),
        z.strictObject({ success: z.literal(false), error: z.string() }),
      ]),
    errors: ['not_found', 'denied'],
    examples: [
      { params: { name: 'files' }, result: { success: true, latencyMs: 1.4, toolCount: 1, tools: ['read_file'] } },
      { params: { name: 'search' }, result: { success: false, error: 'No answer from mcp.example' } },
    ],
    since: '0.1.0',
  }),
  'mcp.authorize': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Begins an authorization (OAuth) at a remote MCP server and returns the address that a person opens in a browser.',
    description:
      'The browser returns to `/oauth/callback` of this gateway, which completes the authorization and connects the server; `mcp.status` shows the outcome. The address works once, for ten minutes, and only while the token of the caller is valid. Also extends an authorization by scopes that the server asked for. Tokens are kept encrypted, refreshed when they expire, and never shown.',
    params: () => z.strictObject(named()),
    result: () =>
      z.strictObject({
        name: McpServerName(),
        authorizationUrl: z.string().describe('Open it in a browser.'),
        redirectUri: z.string().describe('Where the browser returns to; register it when the authorization server asks for it.'),
        scopes: Scopes().describe('What is asked for; empty: what the authorization server grants by default.'),
        expiresAt: EpochMs,
      }),
    errors: ['not_found', 'precondition_failed', 'denied', 'unavailable', 'timeout'],
    examples: [
      {
        params: { name: 'search' },
        result: {
          name: 'search',
          authorizationUrl: 'https://login.example/authorize?client_id=gatehouse&state=…',
          redirectUri: 'http://127.0.0.1:4766/oauth/callback',
          scopes: ['search:read'],
          expiresAt: 1790000600000,
        },
      },
    ],
    since: '0.1.0',
  }),
  'mcp.deauthorize': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes the authorization (OAuth) at an MCP server, revokes its tokens there where that is possible, and ends the connection.',
    description: 'Works by name also for a server that is no longer configured.',
    params: () => z.strictObject(named()),
    result: () =>
      z.strictObject({
        name: McpServerName(),
        revoked: z.boolean().describe('Whether the authorization server confirmed that the tokens are no longer valid.'),
      }),
    errors: ['not_found', 'denied'],
    examples: [{ params: { name: 'search' }, result: { name: 'search', revoked: true } }],
    since: '0.1.0',
  }),
};
