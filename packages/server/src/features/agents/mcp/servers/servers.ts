import { AppError } from '../../../../kernel/app-error.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { liveSecrets } from '../../../../kernel/config/secrets.ts';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { Redactor } from '../../../../kernel/redact.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { Authorizations } from '../authorization/authorizations.ts';
import { McpServerConfig } from '../config.ts';
import { type Connection, type ConnectionEvents, openConnection } from '../connection/connection.ts';
import { createErrorOutput, type ErrorOutput } from '../connection/error-output.ts';
import { ManagedServer } from './managed-server.ts';
import { openTransport } from '../connection/transports.ts';

export interface ServersDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Version of the program, sent to servers. */
  readonly version: string;
  readonly redactor: Pick<Redactor, 'redact' | 'add'>;
  /** Starts the program of a stdio server in its jail; throws where that is not possible. */
  readonly startProcess: (config: McpServerConfig) => Promise<JailedProcess>;
  readonly authorizations: Pick<Authorizations, 'access' | 'accepted'>;
  /** Replaces the network in tests. */
  readonly dial?: Pick<DialRules, 'resolve' | 'allowAddresses'> | undefined;
}

export interface Server {
  readonly name: string;
  readonly source: 'config' | 'stored';
  readonly config: McpServerConfig;
  readonly managed: ManagedServer;
  readonly errorOutput: ErrorOutput;
  /** Whether it is connected when the daemon starts. */
  enabled: boolean;
}

const connectMs = 30_000;

/** The servers that the daemon knows, with the tools of all of them. */
export interface Servers extends AsyncDisposable {
  make(name: string, source: Server['source'], config: McpServerConfig): Server;
  /** Opens a connection apart from the managed ones, with the authorization of a server when it is named; the caller closes it. */
  open(
    name: string | undefined,
    config: McpServerConfig,
    source: Server['source'],
    events: ConnectionEvents,
    signal: AbortSignal,
  ): Promise<Connection>;
  /** Registers a server, replacing another of the same name. */
  put(server: Server): void;
  find(name: string): Server | undefined;
  list(): readonly Server[];
  remove(name: string): void;
  tools(): readonly Tool[];
  visibleTo(agentId: string, tools: readonly Tool[]): readonly Tool[];
}

export function createServers(deps: ServersDeps): Servers {
  const servers = new Map<string, Server>();
  let tools: readonly Tool[] | undefined;
  let visible = new WeakMap<readonly Tool[], Map<string, readonly Tool[]>>();

  function changed(): void {
    tools = undefined;
    visible = new WeakMap();
  }

  async function connect(
    name: string | undefined,
    config: McpServerConfig,
    source: Server['source'],
    events: ConnectionEvents,
    signal: AbortSignal,
    ms: number,
    onErrorOutput: (text: string) => void,
  ): Promise<Connection> {
    const { authorizations } = deps;
    const access = name === undefined ? undefined : authorizations.access({ name, config, isFromFile: source === 'config' });
    const connection = await openConnection(
      config,
      {
        clock: deps.clock,
        version: deps.version,
        openTransport: (onLost) =>
          openTransport(
            config,
            {
              clock: deps.clock,
              startProcess: deps.startProcess,
              onErrorOutput,
              access,
              anyPort: source === 'config',
              ...(deps.dial !== undefined && { dial: deps.dial }),
            },
            onLost,
          ),
      },
      events,
      { signal, connectMs: ms },
    );
    if (name !== undefined) authorizations.accepted(name);
    return connection;
  }

  return {
    make(name, source, config) {
      deps.redactor.add(liveSecrets(McpServerConfig(), config));
      const errorOutput = createErrorOutput();
      return {
        name,
        source,
        config,
        errorOutput,
        enabled: config.enabled,
        managed: new ManagedServer({
          name,
          config,
          clock: deps.clock,
          log: deps.log,
          onTools: changed,
          redactText: deps.redactor.redact,
          open: (events, signal) => connect(name, config, source, events, signal, connectMs, errorOutput.push),
        }),
      };
    },
    open: (name, config, source, events, signal) => connect(name, config, source, events, signal, connectMs, () => {}),
    put(server) {
      servers.set(server.name, server);
      changed();
    },
    find: (name) => servers.get(name),
    list: () => [...servers.values()].toSorted((a, b) => a.name.localeCompare(b.name)),
    remove(name) {
      servers.delete(name);
      changed();
    },
    tools() {
      tools ??= [...servers.values()].flatMap((server) => server.managed.view().tools.map((each) => each.tool));
      return tools;
    },
    visibleTo(agentId, all) {
      const hidden = new Set<string>();
      for (const { name, config } of servers.values()) if (config.agents?.includes(agentId) === false) hidden.add(`mcp:${name}`);
      if (hidden.size === 0) return all;
      let byAgent = visible.get(all);
      if (byAgent === undefined) visible.set(all, (byAgent = new Map()));
      let found = byAgent.get(agentId);
      if (found === undefined) byAgent.set(agentId, (found = all.filter((tool) => tool.source === undefined || !hidden.has(tool.source))));
      return found;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...servers.values()].map((server) => server.managed[Symbol.asyncDispose]()));
    },
  };
}

/** Name of the server that a call addresses. */
export function serverNameOf(params: {
  readonly name?: string | undefined;
  readonly server_name?: string | undefined;
  readonly serverId?: string | undefined;
}): string {
  const names = [params.name, params.server_name, params.serverId].filter((name) => name !== undefined);
  const [name] = names;
  if (name === undefined) throw new AppError('invalid_params', 'name: expected the name of an MCP server', { param: 'name' });
  if (names.some((other) => other !== name))
    throw new AppError('invalid_params', 'name, server_name and serverId are aliases: expected the same name', { param: 'name' });
  return name;
}
