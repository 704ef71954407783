import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { authorizableUrl, type Authorizations } from './authorization/authorizations.ts';
import { AuthorizationNeeded } from './authorization/needed.ts';
import { remoteConfig } from './remote-config.ts';
import { type ChangeBy, ServerChanges, type ServerChangesDeps } from './servers/changes.ts';
import { maxReconnectAttempts } from './servers/link-state.ts';
import { type ManagedServer, reasonOf } from './servers/managed-server.ts';
import { type Server, serverNameOf } from './servers/servers.ts';
import { testServer } from './servers/test-server.ts';

export type McpMethods = HandlersOf<`mcp.${'list' | 'status' | 'connect' | 'disconnect' | 'reconnect' | 'test' | 'authorize' | 'deauthorize'}`>;

export interface McpMethodsDeps extends ServerChangesDeps {
  readonly authorizations: Pick<Authorizations, 'begin' | 'drop' | 'view' | 'isChallenged'>;
}

export function createMcpMethods(deps: McpMethodsDeps): McpMethods {
  const { servers, redactor, authorizations } = deps;
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
        .map((server) => rowOf(server, authorizations));
      return { servers: rows, total: rows.length };
    },

    'mcp.status': async (params, call) => statusOf(known(serverNameOf(params), call), authorizations, redactor.redact),

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
      if (params.forget) {
        await changes.forget(by, server);
        await authorizations.drop(call, server.name);
      } else await changes.setEnabled(by, server, false);
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
      const result = await testServer(
        { clock: deps.clock, servers, redactText: redactor.redact },
        server?.name,
        config,
        server?.source ?? 'stored',
        call.signal,
      );
      await recordAudit(deps, call, {
        actionType: 'mcp.test',
        classification: 'read',
        outcome: result.success ? 'success' : 'failure',
        target: name,
      });
      return result;
    },

    'mcp.authorize': async (params, call) => {
      refuseLimited(call);
      const server = known(serverNameOf(params), call);
      return audited({ call, actionType: 'mcp.authorize.begin' }, server.name, async () => {
        const { name, config, source, managed } = server;
        // What the server asks for is known once it refused a request.
        if (!authorizations.isChallenged(name, authorizableUrl(name, config))) await findChallenge(managed);
        return authorizations.begin(call, { name, config, isFromFile: source === 'config' });
      });
    },

    'mcp.deauthorize': async (params, call) => {
      refuseLimited(call);
      const name = serverNameOf(params);
      const dropped = await authorizations.drop(call, name);
      if (dropped === undefined) throw new AppError('not_found', `There is no authorization for an MCP server "${name}"`, { param: 'name' });
      const server = servers.find(name);
      if (server?.managed.view().status === 'connected') await server.managed.connectAgain();
      return { name, ...dropped };
    },
  };
}

/** Tries to connect a server, so that it says how it is authorized. */
async function findChallenge(managed: ManagedServer): Promise<void> {
  const { status } = managed.view();
  if (status === 'connected') throw new AppError('precondition_failed', 'The server is connected and asked for no authorization', { param: 'name' });
  try {
    await managed.connect();
  } catch (error) {
    if (error instanceof AuthorizationNeeded) return;
    throw new AppError('unavailable', `The server cannot be reached: ${reasonOf(error)}`, { cause: error });
  }
  throw new AppError('precondition_failed', 'The server asks for no authorization; it is connected now', { param: 'name' });
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

type Views = Pick<Authorizations, 'view'>;

function rowOf({ name, source, config, managed, enabled }: Server, views: Views): ResultInput<'mcp.list'>['servers'][number] {
  const view = managed.view();
  const authorization = config.transport === 'stdio' ? undefined : views.view({ name, config });
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
    ...(view.retryAtMs !== undefined && { retryAt: view.retryAtMs }),
    ...(authorization !== undefined && { authorization }),
    ...(view.facts !== undefined && { capabilities: [...view.facts.capabilities] }),
    ...(view.facts?.serverVersion !== undefined && { serverVersion: view.facts.serverVersion }),
  };
}

function statusOf(server: Server, views: Views, redactText: (text: string) => string): ResultInput<'mcp.status'> {
  const { config, name } = server;
  const view = server.managed.view();
  const stderr = redactText(server.errorOutput.text());
  return {
    ...rowOf(server, views),
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
