import { AgentId } from '@gatehouse/contract';
import * as z from 'zod';
import type { Db } from '../../../kernel/db/db.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { IdentityOf } from '../../../kernel/call-context.ts';
import { createSeal as createTextSeal } from '../../../kernel/seal.ts';
import type { McpApi, McpAuthorizationApi } from './api.ts';
import { Authorizations, type AuthorizationsDeps } from './authorization/authorizations.ts';
import { type McpConfig, McpServerConfig } from './config.ts';
import { createMcpMethods, type McpMethods } from './methods.ts';
import { createSeal, type Seal } from './servers/seal.ts';
import { createServers, type Server, type ServersDeps } from './servers/servers.ts';
import { listMcpServers, type McpServerRow } from './store.ts';

export interface McpDeps extends Omit<ServersDeps, 'authorizations'>, Pick<AuthorizationsDeps, 'inbox' | 'defaultAgentId' | 'redirectUri'> {
  readonly identityOf: IdentityOf;
  readonly redactor: ServersDeps['redactor'] & AuthorizationsDeps['redactor'];
  readonly db: Db;
  readonly bus: EventBus;
  /** Section `mcp` of config.yaml. */
  readonly config: Live<McpConfig>;
  /** Seals the headers of stored servers, and authorizations. */
  readonly key: Buffer;
}

export interface Mcp extends AsyncDisposable {
  readonly api: McpApi;
  readonly authorization: McpAuthorizationApi;
  readonly methods: McpMethods;
}

const Agents = z.array(AgentId).min(1);

/**
 * MCP servers of config.yaml and those that `mcp.connect` stored. The enabled ones are connected in the background, all
 * at once: a failing or slow server delays neither the others nor the daemon.
 */
export async function createMcp(deps: McpDeps): Promise<Mcp> {
  const authorizations = new Authorizations({
    ...deps,
    dial: deps.dial,
    seal: createTextSeal(deps.key),
    serverOf(name) {
      const server = servers.find(name);
      return server && { name, config: server.config, isFromFile: server.source === 'config' };
    },
    onAuthorized: (name) => void servers.find(name)?.managed.connectAgain(),
  });
  await authorizations.load();
  const servers = createServers({ ...deps, authorizations });
  const seal = createSeal(deps.key);
  function put(name: string, source: Server['source'], config: McpServerConfig): void {
    const server = servers.make(name, source, config);
    servers.put(server);
    if (config.enabled) server.managed.connectInBackground();
  }

  /** Adds the stored servers whose names are free. */
  async function putStored(): Promise<void> {
    for (const row of await deps.db.read(listMcpServers, {})) {
      const known = servers.find(row.name);
      const config = known === undefined ? storedConfig(row, seal) : undefined;
      // The file overrides a stored server of the same name.
      if (known?.source === 'config') deps.log.warn({ server: row.name }, 'Ignoring a stored MCP server: config.yaml has one of this name');
      else if (config !== undefined) put(row.name, 'stored', config);
      else if (known === undefined)
        deps.log.error({ server: row.name }, 'A stored MCP server cannot be read; connect it again with its address and headers');
    }
  }

  /** Calls that run on a removed or changed server end with its connection. */
  async function follow({ servers: next }: McpConfig): Promise<void> {
    const gone = servers.list().filter(({ name, source, config }) => (source === 'config' ? next[name] !== config : next[name] !== undefined));
    for (const { name } of gone) servers.remove(name);
    for (const [name, config] of Object.entries(next)) if (servers.find(name) === undefined) put(name, 'config', config);
    await Promise.all(gone.map(({ managed }) => managed.disconnect()));
    if (gone.length > 0) await putStored();
  }

  for (const [name, config] of Object.entries(deps.config.current.servers)) put(name, 'config', config);
  await putStored();
  const following = deps.config.onChange(follow);
  return {
    api: { tools: servers.tools, visibleTo: servers.visibleTo },
    authorization: authorizations,
    methods: createMcpMethods({ ...deps, servers, seal, authorizations }),
    [Symbol.asyncDispose]() {
      following[Symbol.dispose]();
      authorizations[Symbol.dispose]();
      return servers[Symbol.asyncDispose]();
    },
  };
}

function storedConfig(row: McpServerRow, seal: Seal): McpServerConfig | undefined {
  const headers = seal.open(row.name, row.headersSealed);
  if (headers === undefined) return undefined;
  return McpServerConfig().safeParse({
    transport: row.transport,
    url: row.url,
    headers,
    enabled: row.enabled === 1,
    ...(row.agentsJson !== null && { agents: Agents.parse(parseJson(row.agentsJson)) }),
  }).data;
}
