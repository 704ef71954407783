import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError, toAppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { redactionMarker } from '../../../kernel/config/secrets.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Redactor } from '../../../kernel/redact.ts';
import { McpServerConfig } from './config.ts';
import { maxReconnectAttempts, reasonOf } from './servers/managed-server.ts';
import type { Seal } from './servers/seal.ts';
import { type Server, serverNameOf, type Servers } from './servers/servers.ts';
import { deleteMcpServer, enableMcpServer, saveMcpServer } from './store.ts';
import { testServer } from './servers/test-server.ts';

export type McpMethods = HandlersOf<`mcp.${'list' | 'status' | 'connect' | 'disconnect' | 'reconnect' | 'test'}`>;

export interface McpMethodsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly redactor: Pick<Redactor, 'redact'>;
  readonly servers: Servers;
  readonly seal: Seal;
}

type RemoteParams = Pick<Params<'mcp.connect'>, 'transport' | 'url' | 'headers' | 'agents'>;

const maxStored = 64;

export function createMcpMethods(deps: McpMethodsDeps): McpMethods {
  const { servers } = deps;
  /** Names whose server is being connected and stored. */
  const placing = new Set<string>();

  /** A server serves all agents unless it is limited to some. */
  function isSeen({ config }: Server, { identity }: CallContext): boolean {
    return identity.agents === undefined || config.agents === undefined || config.agents.some((id) => identity.agents?.includes(id));
  }

  /** Servers belong to the installation: changing one changes what all agents can do. */
  function refuseLimited({ identity }: CallContext): void {
    if (identity.agents !== undefined)
      throw new AppError('denied', 'A token that is limited to some agents cannot change MCP servers', { param: 'name' });
  }

  function known(name: string, call: CallContext): Server {
    const server = servers.find(name);
    if (server === undefined || !isSeen(server, call)) throw new AppError('not_found', `MCP server not found: "${name}"`, { param: 'name' });
    return server;
  }

  /** Reports success and failure; the audit row of a stored change is written with it instead. */
  async function audited<T>(call: CallContext, actionType: string, target: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const outcome = error instanceof AppError && error.code === 'denied' ? 'denied' : 'failure';
      await recordAudit(deps, call, { actionType, classification: 'mutate', outcome, target });
      throw error;
    }
  }

  async function connect(server: Server): Promise<void> {
    try {
      await server.managed.connect();
    } catch (error) {
      const code = toAppError(error).code;
      throw new AppError(
        code === 'internal' ? 'unavailable' : code,
        deps.redactor.redact(`Failed to connect MCP server "${server.name}": ${reasonOf(error)}`),
        {
          cause: error,
        },
      );
    }
  }

  /** Connects before storing: unreachable servers are not stored. */
  async function place(call: CallContext, actionType: string, name: string, config: McpServerConfig): Promise<Server> {
    const before = servers.find(name);
    if (before?.source === 'config')
      throw new AppError('conflict', `The MCP server "${name}" is defined in config.yaml; change it there`, { param: 'name' });
    if (placing.has(name)) throw new AppError('conflict', `The MCP server "${name}" is being connected`, { param: 'name' });
    const stored = servers.list().filter((each) => each.source === 'stored').length + placing.size;
    if (before === undefined && stored >= maxStored)
      throw new AppError('conflict', `At most ${maxStored} MCP servers are stored; mcp.disconnect with forget removes one`, { param: 'name' });
    placing.add(name);
    const server = servers.make(name, 'stored', config);
    try {
      await connect(server);
      const atMs = deps.clock.now();
      const audit = auditRow(call, atMs, { actionType, classification: 'mutate', target: name });
      await deps.db.write(saveMcpServer, {
        row: {
          name,
          transport: config.transport,
          url: config.url ?? '',
          headersSealed: deps.seal.close(name, config.headers),
          agentsJson: config.agents === undefined ? null : JSON.stringify(config.agents),
          enabled: 1,
          createdAtMs: atMs,
        },
        audit,
      });
      announceAudit(deps.bus, audit);
    } catch (error) {
      await server.managed.disconnect();
      throw error;
    } finally {
      placing.delete(name);
    }
    servers.put(server);
    await before?.managed.disconnect();
    return server;
  }

  async function enable(call: CallContext, actionType: string, server: Server, enabled: boolean): Promise<void> {
    const { name } = server;
    const audit = auditRow(call, deps.clock.now(), { actionType, classification: 'mutate', target: name });
    await deps.db.write(enableMcpServer, { name, enabled: enabled ? 1 : 0, audit });
    // The file alone decides about its servers.
    if (server.source === 'stored') server.enabled = enabled;
    announceAudit(deps.bus, audit);
  }

  return {
    'mcp.list': async (_params, call) => {
      const rows = servers
        .list()
        .filter((server) => isSeen(server, call))
        .map(rowOf);
      return { servers: rows, total: rows.length };
    },

    'mcp.status': async (params, call) => {
      const server = known(serverNameOf(params), call);
      const { config, name } = server;
      const view = server.managed.view();
      const stderr = deps.redactor.redact(server.errorOutput.text());
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
    },

    'mcp.connect': async (params, call) => {
      refuseLimited(call);
      const name = serverNameOf(params);
      const present = servers.find(name);
      if (present?.managed.view().status === 'connected') return connectedResult(present);
      return audited(call, 'mcp.connect', name, async () => {
        const config = remoteConfig(params);
        if (config !== undefined) return connectedResult(await place(call, 'mcp.connect', name, config));
        const server = known(name, call);
        await connect(server);
        await enable(call, 'mcp.connect', server, true);
        return connectedResult(server);
      });
    },

    'mcp.disconnect': async (params, call) => {
      refuseLimited(call);
      const server = known(serverNameOf(params), call);
      const { name } = server;
      if (params.forget && server.source === 'config')
        throw new AppError('precondition_failed', `The MCP server "${name}" is defined in config.yaml; remove it there`, { param: 'forget' });
      if (params.forget) {
        const audit = auditRow(call, deps.clock.now(), { actionType: 'mcp.disconnect', classification: 'destructive', target: name });
        await deps.db.write(deleteMcpServer, { name, audit });
        announceAudit(deps.bus, audit);
        servers.remove(name);
      } else await enable(call, 'mcp.disconnect', server, false);
      await server.managed.disconnect();
      return { name, status: 'disconnected' as const, forgotten: params.forget };
    },

    'mcp.reconnect': async (params, call) => {
      refuseLimited(call);
      const name = serverNameOf(params);
      return audited(call, 'mcp.reconnect', name, async () => {
        const server = servers.find(name);
        if (server === undefined) {
          const config = remoteConfig(params);
          if (config === undefined)
            throw new AppError('not_found', `MCP server not found: "${name}", and no transport and url are given to connect it with`, {
              param: 'name',
            });
          return connectedResult(await place(call, 'mcp.reconnect', name, config));
        }
        await server.managed.disconnect();
        await connect(server);
        await enable(call, 'mcp.reconnect', server, true);
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
        { clock: deps.clock, servers, redactText: deps.redactor.redact },
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
  };
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

function connectedResult({ name, managed }: Server): ResultInput<'mcp.connect'> {
  const { status, tools } = managed.view();
  return { name, status, toolCount: tools.length, tools: tools.map((each) => each.name) };
}

/** The server that the parameters describe; undefined when they only name one. */
function remoteConfig(params: RemoteParams): McpServerConfig | undefined {
  const { transport, url, headers, agents } = params;
  if (transport === undefined && url === undefined && headers === undefined && agents === undefined) return undefined;
  // A program named by a caller would run on this machine.
  if (transport === 'stdio')
    throw new AppError(
      'denied',
      'A stdio server is started only from config.yaml (mcp.servers); here it can only be named, and connected if it is defined there',
      {
        param: 'transport',
      },
    );
  if (transport === undefined)
    throw new AppError('invalid_params', 'transport: expected "http" or "sse" with the address of a server', { param: 'transport' });
  if (url === undefined) throw new AppError('invalid_params', 'url: expected the address of the server', { param: 'url' });
  if (Object.values(headers ?? {}).includes(redactionMarker))
    throw new AppError('invalid_params', `headers: found ${redactionMarker} instead of a secret; pass the value itself`, { param: 'headers' });
  const parsed = McpServerConfig.safeParse({ transport, url, ...(headers !== undefined && { headers }), ...(agents !== undefined && { agents }) });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.join('.') ?? 'url';
  throw new AppError('invalid_params', `${path}: ${issue?.message ?? 'not valid'}`, { param: path });
}
