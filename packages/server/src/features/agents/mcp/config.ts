import { AgentId, McpHeaders, McpServerName, mcpTransports, once } from '@gatehouse/contract';
import * as z from 'zod';

const bare = /^\$[A-Za-z_]/;
const Value = once(() =>
  z
    .string()
    .max(32_768)
    .refine((value) => !bare.test(value), 'expected ${NAME} with braces, or literal text'),
);
const MiB = 1024 * 1024;

/** One server of section `mcp.servers`. */
export const McpServerConfig = once(() =>
  z
    .strictObject({
      transport: z.enum(mcpTransports).describe('stdio: a program started in a jail; http: streamable HTTP; sse: its predecessor.'),
      enabled: z.boolean().default(true).describe('Connects it when the daemon starts.'),
      command: z.string().min(1).max(4096).optional().describe('stdio: the program, as the jail finds it (on its PATH, or below a mount).'),
      args: z.array(z.string().max(32_768)).max(256).default([]).describe('stdio: its arguments; no shell reads them.'),
      env: z
        .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected a name of letters, digits and "_"'), Value())
        .default({})
        .meta({ secret: true })
        .describe('stdio: its whole environment except PATH and HOME; "${NAME}" takes a value from that of the daemon.'),
      cwd: z.string().startsWith('/').optional().describe('stdio: its working folder inside the jail; /tmp otherwise.'),
      mounts: z
        .array(
          z.strictObject({
            path: z.string().startsWith('/').describe('Folder or file of this machine.'),
            to: z.string().startsWith('/').optional().describe('Where the server sees it; at the same path otherwise.'),
            writable: z.boolean().default(false),
          }),
        )
        .max(64)
        .default([])
        .describe('stdio: what the server sees of this machine in addition to its system folders.'),
      network: z.boolean().default(false).describe('stdio: whether the server reaches the network, including that of this machine.'),
      limits: z
        .strictObject({
          memoryBytes: z
            .int()
            .min(16 * MiB)
            .default(2048 * MiB),
          processes: z.int().min(1).max(4096).default(64),
          cpuSeconds: z.int().min(1).default(86_400),
          fileBytes: z
            .int()
            .min(MiB)
            .default(1024 * MiB),
          openFiles: z.int().min(16).max(65_536).default(1024),
        })
        .prefault({})
        .describe('stdio: limits of the server and everything that it starts.'),
      url: z
        .url({ protocol: /^https?$/ })
        .refine((url) => !/^[^/]*\/\/[^/]*@/.test(url), 'expected no user name or password in the address; they belong in headers')
        .optional()
        .describe('http, sse: its address.'),
      headers: McpHeaders()
        .refine((headers) => !Object.values(headers).some((value) => bare.test(value)), 'expected ${NAME} with braces, or literal text')
        .default({})
        .meta({ secret: true })
        .describe('http, sse: headers of every request, such as Authorization.'),
      oauth: z
        .strictObject({
          clientId: Value()
            .min(1)
            .max(2048)
            .optional()
            .describe(
              'Client that was registered at the authorization server by hand, or the address of its metadata document; registered automatically otherwise.',
            ),
          clientSecret: Value().min(1).optional().meta({ secret: true }).describe('Secret of that client, if it has one.'),
          scopes: z
            .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'expected a scope without spaces'))
            .max(64)
            .optional()
            .describe('Scopes to ask for; those that the server names otherwise.'),
          allowPrivate: z.boolean().default(false).describe('Whether the authorization server may be on this machine or a private network.'),
        })
        .prefault({})
        .describe('http, sse: how the server is authorized (OAuth) when it asks for it and headers have no Authorization; see mcp.authorize.'),
      allowPrivate: z.boolean().default(false).describe('http, sse: whether the address may be one of this machine or of a private network.'),
      agents: z.array(AgentId).min(1).max(256).optional().describe('The only agents that see its tools; all when absent.'),
      readOnlyTools: z
        .array(z.string().min(1).max(128))
        .max(256)
        .default([])
        .describe(
          'Names of read-only tools, "*" for any characters: they need no approval and may run in parallel. What a server says about its own tools carries no authority.',
        ),
      timeoutMs: z.int().min(100).max(3_600_000).default(120_000).describe('Deadline of one call, in milliseconds.'),
      maxConcurrency: z.int().min(1).max(64).optional().describe('Calls at once: 1 for stdio, 4 for http and sse otherwise.'),
    })
    .superRefine((server, issues) => {
      const need = server.transport === 'stdio' ? 'command' : 'url';
      if (server[need] === undefined) issues.addIssue({ code: 'custom', path: [need], message: `needed with transport ${server.transport}` });
      const extra = server.transport === 'stdio' ? 'url' : 'command';
      if (server[extra] !== undefined)
        issues.addIssue({ code: 'custom', path: [extra], message: `means nothing with transport ${server.transport}` });
      if (server.oauth.clientSecret !== undefined && server.oauth.clientId === undefined)
        issues.addIssue({ code: 'custom', path: ['oauth', 'clientId'], message: 'needed with clientSecret' });
    }),
);
export type McpServerConfig = z.output<ReturnType<typeof McpServerConfig>>;

/** Section `mcp` of config.yaml: servers whose tools the agents may use. */
export const McpConfig = once(() =>
  z.strictObject({
    servers: z
      .record(McpServerName(), z.lazy(McpServerConfig))
      .default({})
      .describe('MCP servers by name; their tools are called mcp__<name>--<tool>.'),
  }),
);
export type McpConfig = z.output<ReturnType<typeof McpConfig>>;
