import { AppError, toAppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Redactor } from '../../../../kernel/redact.ts';
import { AuthorizationNeeded } from '../authorization/needed.ts';
import type { McpServerConfig } from '../config.ts';
import { deleteMcpServer, enableMcpServer, saveMcpServer } from '../store.ts';
import { reasonOf } from './managed-server.ts';
import type { Seal } from './seal.ts';
import type { Server, Servers } from './servers.ts';

export interface ServerChangesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly redactor: Pick<Redactor, 'redact'>;
  readonly servers: Servers;
  readonly seal: Seal;
}

/** The call that makes a change, and the action that its audit row names. */
export interface ChangeBy {
  readonly call: CallContext;
  readonly actionType: string;
}

const maxStored = 64;

/** Changes of the set of servers, each stored with its audit row. */
export class ServerChanges {
  readonly #deps: ServerChangesDeps;
  /** Names whose server is being connected and stored. */
  readonly #placing = new Set<string>();

  constructor(deps: ServerChangesDeps) {
    this.#deps = deps;
  }

  async connect(server: Server): Promise<void> {
    try {
      await server.managed.connect();
    } catch (error) {
      const code = toAppError(error).code;
      throw new AppError(
        code === 'internal' ? 'unavailable' : code,
        this.#deps.redactor.redact(`Failed to connect MCP server "${server.name}": ${reasonOf(error)}`),
        {
          cause: error,
        },
      );
    }
  }

  /** Connects before storing: unreachable servers are not stored. */
  async place(by: ChangeBy, name: string, config: McpServerConfig): Promise<Server> {
    const { servers } = this.#deps;
    const before = servers.find(name);
    if (before?.source === 'config')
      throw new AppError('conflict', `The MCP server "${name}" is defined in config.yaml; change it there`, { param: 'name' });
    if (this.#placing.has(name)) throw new AppError('conflict', `The MCP server "${name}" is being connected`, { param: 'name' });
    const stored = servers.list().filter((each) => each.source === 'stored').length + this.#placing.size;
    if (before === undefined && stored >= maxStored)
      throw new AppError('conflict', `At most ${maxStored} MCP servers are stored; mcp.disconnect with forget removes one`, { param: 'name' });
    this.#placing.add(name);
    const server = servers.make(name, 'stored', config);
    try {
      await this.connect(server).catch((error: unknown) => {
        // It is reached, and can be authorized once it is stored.
        if (!(error instanceof AppError) || !(error.details.cause instanceof AuthorizationNeeded) || !error.details.cause.isChallenged) throw error;
      });
      await this.#save(by, name, config);
    } catch (error) {
      await server.managed.disconnect();
      throw error;
    } finally {
      this.#placing.delete(name);
    }
    servers.put(server);
    await before?.managed.disconnect();
    return server;
  }

  async setEnabled({ call, actionType }: ChangeBy, server: Server, enabled: boolean): Promise<void> {
    const { db, bus, clock } = this.#deps;
    const { name } = server;
    const audit = auditRow(call, clock.now(), { actionType, classification: 'mutate', target: name });
    await db.write(enableMcpServer, { name, enabled: enabled ? 1 : 0, audit });
    // The file alone decides about its servers.
    if (server.source === 'stored') server.enabled = enabled;
    announceAudit(bus, audit);
  }

  /** Deletes a stored server; the caller disconnects it. */
  async forget({ call, actionType }: ChangeBy, { name, source }: Server): Promise<void> {
    const { db, bus, clock, servers } = this.#deps;
    if (source === 'config')
      throw new AppError('precondition_failed', `The MCP server "${name}" is defined in config.yaml; remove it there`, { param: 'forget' });
    const audit = auditRow(call, clock.now(), { actionType, classification: 'destructive', target: name });
    await db.write(deleteMcpServer, { name, audit });
    announceAudit(bus, audit);
    servers.remove(name);
  }

  async #save({ call, actionType }: ChangeBy, name: string, config: McpServerConfig): Promise<void> {
    const { db, bus, clock, seal } = this.#deps;
    const atMs = clock.now();
    const audit = auditRow(call, atMs, { actionType, classification: 'mutate', target: name });
    await db.write(saveMcpServer, {
      row: {
        name,
        transport: config.transport,
        url: config.url ?? '',
        headersSealed: seal.close(name, config.headers),
        agentsJson: config.agents === undefined ? null : JSON.stringify(config.agents),
        enabled: 1,
        createdAtMs: atMs,
      },
      audit,
    });
    announceAudit(bus, audit);
  }
}
