import { AgentId } from '@gatehouse/contract';
import * as z from 'zod';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { McpApi } from './api.ts';
import { type McpConfig, McpServerConfig } from './config.ts';
import { createMcpMethods, type McpMethods } from './methods.ts';
import { createSeal, type Seal } from './servers/seal.ts';
import { createServers, type ServersDeps } from './servers/servers.ts';
import { listMcpServers, type McpServerRow } from './store.ts';

export interface McpDeps extends ServersDeps {
  readonly db: Db;
  readonly bus: EventBus;
  /** Section `mcp` of config.yaml. */
  readonly config: McpConfig;
  /** Seals the headers of stored servers. */
  readonly key: Buffer;
}

export interface Mcp extends AsyncDisposable {
  readonly api: McpApi;
  readonly methods: McpMethods;
}

const Agents = z.array(AgentId).min(1);

/**
 * MCP servers of config.yaml and those that `mcp.connect` stored. The enabled ones are connected in the background, all
 * at once: a failing or slow server delays neither the others nor the daemon.
 */
export async function createMcp(deps: McpDeps): Promise<Mcp> {
  const servers = createServers(deps);
  const seal = createSeal(deps.key);
  for (const [name, config] of Object.entries(deps.config.servers)) {
    const server = servers.make(name, 'config', config);
    servers.put(server);
    if (config.enabled) server.managed.connectInBackground();
  }
  for (const row of await deps.db.read(listMcpServers, {})) {
    const config = storedConfig(row, seal);
    // The file overrides a stored server of the same name.
    if (servers.find(row.name) !== undefined) deps.log.warn({ server: row.name }, 'Ignoring a stored MCP server: config.yaml has one of this name');
    else if (config === undefined)
      deps.log.error({ server: row.name }, 'A stored MCP server cannot be read; connect it again with its address and headers');
    else {
      const server = servers.make(row.name, 'stored', config);
      servers.put(server);
      if (config.enabled) server.managed.connectInBackground();
    }
  }
  return {
    api: { tools: servers.tools, visibleTo: servers.visibleTo },
    methods: createMcpMethods({ ...deps, servers, seal }),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
}

function storedConfig(row: McpServerRow, seal: Seal): McpServerConfig | undefined {
  const headers = seal.open(row.name, row.headersSealed);
  if (headers === undefined) return undefined;
  return McpServerConfig.safeParse({
    transport: row.transport,
    url: row.url,
    headers,
    enabled: row.enabled === 1,
    ...(row.agentsJson !== null && { agents: Agents.parse(parseJson(row.agentsJson)) }),
  }).data;
}
