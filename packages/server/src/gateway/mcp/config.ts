import * as z from 'zod';

/** Key `gateway.mcp` of config.yaml. */
export const McpConfig = z
  .strictObject({
    maxSessions: z.int().min(1).max(100_000).default(1_000).describe('Open sessions of all MCP clients.'),
    maxSessionsPerToken: z.int().min(1).max(100_000).default(50).describe('Sessions per token; beyond that the longest unused one ends.'),
    maxCallsPerToken: z.int().min(1).max(100_000).default(128).describe('Requests and streams that one token may have open.'),
    sessionIdleMs: z.int().min(1_000).max(604_800_000).default(1_800_000).describe('Idle time after which a session ends, in milliseconds.'),
  })
  .describe('The MCP endpoint /mcp, where other programs use the agents as tools (scope mcp-client).');
export type McpConfig = z.output<typeof McpConfig>;
