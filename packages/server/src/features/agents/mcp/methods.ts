import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { remoteConfig } from './remote-config.ts';
import { type ChangeBy, ServerChanges, type ServerChangesDeps } from './servers/changes.ts';
import { maxReconnectAttempts } from './servers/link-state.ts';
import { type Server, serverNameOf } from './servers/servers.ts';
import { testServer } from './servers/test-server.ts';

export type McpMethods = HandlersOf<`mcp.${'list' | 'status' | 'connect' | 'disconnect' | 'reconnect' | 'test'}`>;

export function createMcpMethods(deps: ServerChangesDeps): McpMethods {
  const { servers, redactor } = deps;
  const changes = new ServerChanges(deps);

  function known(name: string, call: CallContext): Server {
    const server = servers.find(name);
    if (server === undefined || !isSeen(server, call)) throw new AppError('not_found', `MCP server not found: "${name}"`, { param: 'name' });
    return server;
  }

  /** Reports failure; the audit row of a stored change is written with it. */
  async function audited<T>({ call, actionType }: ChangeBy, target: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const outcome = error instanceof AppError && error.code === 'denied' ? 'denied' : 'failure';
      await recordAudit(deps, call, { actionType, classification: 'mutate', outcome, target });
      throw error;
    }
  }

  return {
    'mcp.list': async (_params, call) => {
      const rows = servers
        .list()
        .filter((server) => isSeen(server, call))
        .map(rowOf);
      return { servers: rows, total: rows.length };
    },

    'mcp.status': async (params, call) => statusOf(known(serverNameOf(params), call), redactor.redact),

    'mcp.connect': async (params, call) => {
      refuseLimited(call);
      const by = { call, actionType: 'mcp.connect' };
      const name = serverNameOf(params);
      const present = servers.find(name);
      if (present?.managed.view().status === 'connected') return connectedResult(present);
      return audited(by, name, async () => {
        const config = remoteConfig(params);
        if (config !== undefined) return connectedResult(await changes.place(by, name, config));
        const server = known(name, call);
        await changes.connect(server);
        await changes.setEnabled(by, server, true);
        return connectedResult(server);
      });
    },

    'mcp.disconnect': async (params, call) => {
      refuseLimited(call);
      const by = { call, actionType: 'mcp.disconnect' };
      const server = known(serverNameOf(params), call);
      if (params.forget) await changes.forget(by, server);
      else await changes.setEnabled(by, server, false);
      await server.managed.disconnect();
      return { name: server.name, status: 'disconnected' as const, forgotten: params.forget };
    },

    'mcp.reconnect': async (params, call) => {
      refuseLimited(call);
      const by = { call, actionType: 'mcp.reconnect' };
      const name = serverNameOf(params);
      return audited(by, name, async () => {
        const server = servers.find(name);
        if (server === undefined) {
          const config = remoteConfig(params);
          if (config === undefined)
            throw new AppError('not_found', `MCP server not found: "${name}", and no transport and url are given to connect it with`, {
              param: 'name',
            });
          return connectedResult(await changes.place(by, name, config));
        }
        await server.managed.disconnect();
        await changes.connect(server);
        await changes.setEnabled(by, server, true);
        return connectedResult(server);
      });
    },

    'mcp.test': async (params, call) => {
      refuseLimited(call);
      const name = serverNameOf(params);
      const given = remoteConfig(params);
      const server = given === undefined ? known(name, call) : undefined;
      const config = given ?? server?.config ?? known(name, call).config;
      const result = await testServer({ clock: deps.clock, servers, redactText: redactor.redact }, config, server?.source ?? 'stored', call.signal);
      await recordAudit(deps, call, {
        actionType: 'mcp.test',
        classification: 'read',
        outcome: result.success ? 'success' : 'failure',
        target: name,
      });
      return result;
    },
  };
}

/** A server serves all agents unless it is limited to some. */
function isSeen({ config }: Server, { identity }: CallContext): boolean {
  return identity.agents === undefined || config.agents === undefined || config.agents.some((id) => identity.agents?.includes(id));
}

/** Servers belong to the installation: changing one changes what all agents can do. */
function refuseLimited({ identity }: CallContext): void {
  if (identity.agents !== undefined)
    throw new AppError('denied', 'A token that is limited to some agents cannot change MCP servers', { param: 'name' });
}

function rowOf({ name, source, config, managed, enabled }: Server): ResultInput<'mcp.list'>['servers'][number] {
  const view = managed.view();
  return {
    name,
    transport: config.transport,
    source,
    enabled,
    status: view.status,
    toolCount: view.tools.length,
    lastHealthCheck: view.lastAnswerAtMs,
    reconnectAttempt: view.reconnectAttempt,
    generation: view.generation,
    ...(config.agents !== undefined && { agents: config.agents }),
    ...(view.error !== undefined && { error: view.error }),
    ...(view.facts !== undefined && { capabilities: [...view.facts.capabilities] }),
    ...(view.facts?.serverVersion !== undefined && { serverVersion: view.facts.serverVersion }),
  };
}

function statusOf(server: Server, redactText: (text: string) => string): ResultInput<'mcp.status'> {
  const { config, name } = server;
  const view = server.managed.view();
  const stderr = redactText(server.errorOutput.text());
  return {
    ...rowOf(server),
    maxReconnectAttempts,
    address: config.transport === 'stdio' ? (config.command ?? '') : new URL(config.url ?? '').origin,
    ...(config.transport !== 'stdio' && { headerNames: Object.keys(config.headers) }),
    ...(view.facts?.instructions !== undefined && { instructions: view.facts.instructions }),
    ...(stderr !== '' && { stderr }),
    droppedTools: view.droppedTools,
    tools: view.tools.map((each) => ({
      name: each.name,
      qualifiedName: `mcp:${name}/${each.name}`,
      callableName: each.tool.name,
      ...(each.description !== '' && { description: each.description }),
      risk: each.tool.risk === 'read' ? ('read' as const) : ('write' as const),
    })),
  };
}

function connectedResult({ name, managed }: Server): ResultInput<'mcp.connect'> {
  const { status, tools } = managed.view();
  return { name, status, toolCount: tools.length, tools: tools.map((each) => each.name) };
}
